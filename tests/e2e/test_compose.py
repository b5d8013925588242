"""End-to-end tests of the experiment in containers, on images built here: its figures, its ports,
and its end, by itself or by a signal. Only the differences from native runs are checked."""

import csv
import json
import os
import re
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
import psutil
import pytest
from jsonschema import Draft202012Validator

from racetrack.config import REPO, Settings
from racetrack.engines import example_engine
from racetrack.stack import processes
from racetrack.stack.lifetime import Watchdog
from racetrack.stack.runtime import open_stack
from racetrack.stack.service import find_service
from tests.docker_engine import Engine
from tests.e2e.shared import Door, NothingLeft, Open, WaitUntil, ended_well
from tests.run_json import read_run
from tests.some_engines import EXAMPLE

ENGINE = example_engine()
LABEL = "com.docker.compose.project"
CONTAINERS = {"mysql", "redpanda", "debezium", "loadgen", *ENGINE.services}
SERVICES = {"mysql", "broker", "debezium", "loadgen", *ENGINE.services}
BYSTANDER = "-of-somebody-else"


@pytest.fixture(scope="module")
def client(docker_engine: Engine) -> docker.DockerClient:
    return docker.from_env()


@pytest.fixture(scope="module")
def bystander(client: docker.DockerClient, contained: Settings) -> Iterator[Any]:
    """Run a container of another project whose name begins like ours."""
    container = client.containers.run(
        client.images.list("racetrack/airgap-loadgen")[0],
        ["sleep", "1000"],
        entrypoint=[],
        detach=True,
        labels={LABEL: contained.stack_name + BYSTANDER},
        network_mode="none",
    )
    yield container
    container.remove(force=True)


@pytest.fixture
def nothing_left(
    client: docker.DockerClient, contained: Settings, bystander: Any
) -> Callable[[], None]:
    """Return a function that fails unless nothing of the stack is left, while the bystander still
    runs."""

    def check() -> None:
        ours = {"label": f"{LABEL}={contained.stack_name}"}
        assert client.api.containers(all=True, filters=ours) == []
        assert client.api.networks(filters=ours) == []
        assert not client.api.volumes(filters=ours)["Volumes"]
        assert listening(contained) == {}
        bystander.reload()
        assert bystander.status == "running"

    return check


@pytest.fixture(scope="module")
def finished(contained: Settings, bystander: Any) -> Door:
    """Run one experiment at 1,000/s to its end. Before it, another one was killed together with its
    watchdog, and so left its containers."""
    killed = Door("run_experiment.sh", EXAMPLE, "1000", "30", "2", "1.0")
    killed.until("ready after")
    killed.kill_with_watchdog()
    door = Door("run_experiment.sh", EXAMPLE, "1000", "10", "5", "1.0")
    ended_well(door)
    return door


@pytest.fixture(scope="module")
def folder(finished: Door) -> Path:
    return finished.folder


def test_it_clears_what_a_killed_run_left_and_leaves_nothing(
    finished: Door, nothing_left: NothingLeft
) -> None:
    assert re.search(r"Cleared what a killed run left: \d+ container", finished.output)
    nothing_left()


def test_its_run_json_is_valid_and_names_runtime_and_images(folder: Path) -> None:
    schema = json.loads((REPO / "docs" / "run.schema.json").read_text())
    run = read_run(folder)
    Draft202012Validator(schema).validate(run)
    assert (run["outcome"], run["runtime"]) == ("ok", "compose")
    assert run["measured"]["handed_over"] == run["measured"]["end_offsets"]
    assert run["results"]["processed_events"] == run["results"]["published_events"] > 10_000
    assert run["results"]["noise"]["harness_cpu_pct"] < 5
    for name in CONTAINERS:
        assert re.search(r"racetrack/\S+:\S+.*sha256:[0-9a-f]{64}", run["versions"][name]), name
    assert re.match(r"\d+\.\d+", run["versions"]["docker"])


def test_the_kernels_account_of_containers_agrees_with_that_of_their_processes(
    folder: Path,
) -> None:
    by_group, by_process = used(folder / "cgroup.csv"), used(folder / "usage.csv")
    assert by_group.keys() == SERVICES
    assert by_process.keys() == SERVICES | {"client"}  # follows the views, outside of containers
    for name, group_s in by_group.items():
        # The control group also includes health checks, which come and go.
        assert 0.9 * by_process[name] - 0.1 <= group_s <= 1.5 * by_process[name] + 3.0, name


def test_ctrl_c_while_it_runs(contained: Settings, door: Open, nothing_left: NothingLeft) -> None:
    run = door("run_experiment.sh", EXAMPLE, "1000", "60", "2", "1.0")
    run.until(r"^\[4/6\]")
    found, of = listening(contained), contained
    own = {port for name in ENGINE.services for port in ports(name, contained)}
    assert own
    stack = {of.kafka_port, of.schema_registry_port, of.mysql_port, of.connect_port}
    assert {*stack, of.loadgen_port, *own} == found.keys()
    assert set().union(*found.values()) == {"127.0.0.1"}
    hints = " ".join(ENGINE.usage_hints(open_stack(contained, sorted(SERVICES), print)))
    for url in re.findall(r"http://\S+", hints):
        assert page(url).startswith("<!")
    with socket.create_connection(("127.0.0.1", contained.loadgen_port), 5) as control:
        assert control.makefile().readline() == "LOADGEN Connected.\n"
    assert "mysql.shop.users-value" in page(
        f"http://127.0.0.1:{contained.schema_registry_port}/subjects"
    )
    run.signal(signal.SIGINT)
    assert run.wait() == 128 + signal.SIGINT
    nothing_left()
    assert run.record()["outcome"] == "interrupted by SIGINT"


def test_what_a_killed_runner_leaves_is_ended_by_its_watchdog(
    door: Open,
    contained: Settings,
    nothing_left: NothingLeft,
    wait_until: WaitUntil,
) -> None:
    run = door("run_experiment.sh", EXAMPLE, "1000", "60", "2", "1.0")
    run.until("ready after")  # the first service; `docker compose up` still starts others
    os.killpg(run.process.pid, signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    Watchdog("compose", contained.stack_name).wait_for_last(print)
    nothing_left()
    assert processes.members(contained.stack_name) == []
    wait_until(lambda: not run.programs(), "end of all that the runner had begun")
    assert run.record()["outcome"] == "the harness was killed"


def ports(service: str, settings: Settings) -> list[int]:
    return list(find_service(service).ports(settings).values())


def listening(settings: Settings) -> dict[int, set[str]]:
    """Return the addresses that are listened on, for each of the stack's ports."""
    ours = {port for name, port in settings.model_dump().items() if name.endswith("_port")}
    found: dict[int, set[str]] = {}
    for connection in psutil.net_connections(kind="tcp"):
        local = connection.laddr
        if connection.status == psutil.CONN_LISTEN and local and local.port in ours:
            found.setdefault(local.port, set()).add(local.ip)
    return found


def page(url: str) -> str:
    """Return the content at a URL."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  # of this machine
        text: str = answer.read().decode()
        return text


def used(path: Path) -> Mapping[str, float]:
    """Return CPU seconds between the first and the last row of each service."""
    rows: dict[str, list[float]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["service"], []).append(float(row["cpu_s"]))
    assert all(len(values) > 5 for values in rows.values())
    return {name: values[-1] - values[0] for name, values in rows.items()}
