"""Tests of resources of this machine: separate cores for the measured services and for the harness,
files in memory, as lists of mounts show them, and free ports."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack import engines, host
from racetrack.config import Settings, load
from racetrack.errors import BusyError
from racetrack.stack import resources
from tests.ports import free_ports
from tests.some_engines import EXAMPLE

HERE = sorted(host.usable_cores())
ASK = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
needs_two = pytest.mark.skipif(len(HERE) < 2, reason="this machine has one core")


@pytest.fixture
def _own_affinity() -> Iterator[None]:
    """Restore the cores that the test's process may use."""
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


def seen_by(settings: Settings, service: str) -> str:
    """Return the cores that a process of this service may use, as it prints them."""
    command = resources.pinned_command(settings, service, ASK)
    return subprocess.check_output(command, text=True).strip()


@needs_two
@pytest.mark.usefixtures("_own_affinity")
def test_each_uses_its_own_cores_and_those_of_the_harness_all_but_the_engine() -> None:
    settings = load({"BROKER_CPUS": str(HERE[0]), "LOADGEN_CPUS": str(HERE[1])})
    seen = [seen_by(settings, name) for name in ("broker", "loadgen", "mysql")]
    assert seen == [f"[{HERE[0]}]", f"[{HERE[1]}]", str(HERE)]
    settings = load({"HARNESS_CPUS": str(HERE[1]), "LOADGEN_CPUS": str(HERE[0])})
    ends = threading.Event()
    earlier = threading.Thread(target=ends.wait)
    earlier.start()
    try:
        resources.pin_harness(settings)
        assert os.sched_getaffinity(0) == os.sched_getaffinity(earlier.native_id or 0) == {HERE[1]}
    finally:
        ends.set()
        earlier.join()
    assert host.describe().cores == len(HERE)  # the machine has as many cores as before
    for service in ("mysql", "broker", "debezium", "registry", "redis"):
        assert seen_by(settings, service) == f"[{HERE[1]}]"
    assert seen_by(settings, "loadgen") == f"[{HERE[0]}]"
    engine = engines.find_engine(EXAMPLE).services[0]
    assert seen_by(settings, engine) == str(HERE)


def test_threads_of_one_core_are_not_divided(tmp_path: Path) -> None:
    # The threads of a core are half of all numbers apart.
    first = {number: number % max(1, len(HERE) // 2) for number in HERE}
    for number in HERE:
        topology = tmp_path / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{number},{first[number]}\n")
    cores = host.separable_cores(tmp_path)
    assert sorted(cores) == HERE
    assert [first[number] for number in cores] == sorted(first.values())


# Mounts as in `/proc/<pid>/mountinfo` of a container. Its own folders in memory are the data, /tmp
# and /dev/shm.
MOUNTS = """\
501 400 0:52 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/l
502 501 0:55 / /proc rw,nosuid - proc proc rw
503 501 0:56 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
507 503 0:59 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k
508 501 0:60 / /var/lib/mysql rw,nosuid - tmpfs tmpfs rw,size=1048576k
509 501 0:61 / /tmp rw - tmpfs tmpfs rw
510 501 254:0 /etc/hosts /etc/hosts rw,relatime - ext4 /dev/vda rw
511 502 0:62 / /proc/kcore rw,nosuid - tmpfs tmpfs rw
512 505 0:63 / /sys/firmware ro - tmpfs tmpfs ro
"""


def test_a_containers_own_are_found(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/mountinfo").write_text(MOUNTS)
    found = [path.relative_to(tmp_path / "7/root") for path in resources.tmpfs_of(7, tmp_path)]
    assert [*map(str, found)] == ["dev/shm", "var/lib/mysql", "tmp"]


def test_the_holder_and_the_setting_are_named_until_the_port_is_given_up() -> None:
    (port,) = free_ports(1)
    ports = [{"KAFKA_PORT": port}]
    with (
        socket.create_server(("127.0.0.1", port)) as server,
        socket.create_connection(("127.0.0.1", port)),
    ):
        with pytest.raises(BusyError, match=rf"{port} .*pid {os.getpid()} .*set KAFKA_PORT"):
            resources.require_free_ports("127.0.0.1", ports)
        server.accept()[0].close()  # leaves a connection in TIME_WAIT
    resources.require_free_ports("127.0.0.1", ports)
