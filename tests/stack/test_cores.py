"""Tests of separate cores for the measured services and for the harness."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack import engines, host
from racetrack.config import Settings, load
from racetrack.errors import UsageError
from racetrack.stack import resources
from racetrack.units import parse_cores
from tests.some_engines import EXAMPLE

HERE = sorted(host.usable_cores())
ASK = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
needs_two = pytest.mark.skipif(len(HERE) < 2, reason="this machine has one core")


@pytest.fixture
def own_affinity() -> Iterator[None]:
    """Restore the cores that the test's process may use, at the end."""
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


def seen_by(settings: Settings, service: str) -> str:
    """Return the cores that a process of this service may use, as it prints them."""
    return subprocess.check_output(
        resources.pinned_command(settings, service, ASK), text=True
    ).strip()


@needs_two
def test_each_uses_its_own_and_the_others_all() -> None:
    settings = load({"BROKER_CPUS": str(HERE[0]), "LOADGEN_CPUS": str(HERE[1])})
    seen = [seen_by(settings, name) for name in ("broker", "loadgen", "mysql")]
    assert seen == [f"[{HERE[0]}]", f"[{HERE[1]}]", str(HERE)]


@needs_two
@pytest.mark.usefixtures("own_affinity")
def test_the_cores_of_the_harness_are_those_of_everything_but_the_engine() -> None:
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


@pytest.mark.parametrize(
    ("cores", "engine", "rest"),
    [((), "", ""), ((3,), "", ""), ((0, 1), "1", "0"), ((0, 2, 1), "1", "0,2")],
)
def test_half_of_the_cores_are_the_engine_s(cores: tuple[int, ...], engine: str, rest: str) -> None:
    settings = resources.apart(cores)
    assert settings.get("ENGINE_CPUS", "") == engine
    assert settings.get("HARNESS_CPUS", "") == rest


def test_threads_of_one_core_are_not_divided(tmp_path: Path) -> None:
    for number in HERE:  # the threads of a core are half of all numbers apart
        topology = tmp_path / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        first = number % max(1, len(HERE) // 2)
        (topology / "thread_siblings_list").write_text(f"{number},{first}\n")
    cores = host.separable_cores(tmp_path)
    assert sorted(cores) == HERE
    assert [number % max(1, len(HERE) // 2) for number in cores] == sorted(
        number % max(1, len(HERE) // 2) for number in HERE
    )


def test_a_core_that_is_not_there_is_refused_by_name() -> None:
    assert parse_cores("0,2-3,7") == {0, 2, 3, 7}
    with pytest.raises(UsageError, match=r"ENGINE_CPUS=0,4000 .* not 4000\."):
        resources.require_cores(load({"ENGINE_CPUS": "0,4000"}))
    with pytest.raises(UsageError, match="ENGINE_CPUS"):
        load({"ENGINE_CPUS": "1,,2"})
