"""End-to-end tests of containers: their processes, how they end, and a stack that stays up."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import psutil
import pytest
from docker.models.containers import Container

from racetrack.config import Settings, load
from racetrack.errors import BusyError, RacetrackError, UsageError
from racetrack.probes.loadgen import Control
from racetrack.run import faults
from racetrack.stack.compose.engine import find
from racetrack.stack.compose.stack import ComposeStack
from tests.docker_engine import Engine
from tests.some_engines import EXAMPLE

pytestmark = pytest.mark.e2e

SERVICES = ("mysql", "broker", "loadgen")


@pytest.fixture(scope="module")
def settings() -> Settings:
    loaded = load({"RUNTIME": "compose", "AIRGAP": "true"})
    return loaded.model_copy(update={"stack_name": f"{loaded.stack_name}-driven"})


@pytest.fixture(scope="module")
def opened(
    docker_engine: Engine, airgap_images: None, settings: Settings
) -> Callable[[], ComposeStack]:
    """Return a function that opens the stack as another process would."""
    return lambda: ComposeStack(settings, find(airgap=True))


@pytest.fixture(scope="module")
def stack(
    opened: Callable[[], ComposeStack], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ComposeStack]:
    """Start MySQL, the broker and the load generator; stop them at the end."""
    stack = opened()
    (logs := tmp_path_factory.mktemp("run") / "stack").mkdir()
    stack.prepare(SERVICES, print)
    try:
        stack.start(SERVICES, logs, print)
        yield stack
    finally:
        stack.stop(print)


def container(stack: ComposeStack, service: str) -> Container:
    """Return a container from Docker's own client."""
    name = f"{stack.settings.stack_name}-{service}-1"
    return docker.from_env().containers.get(name)


def events(settings: Settings) -> int:
    """Return the number of events that the load generator has handed over."""
    with Control(settings.reach_address, settings.loadgen_port) as control:
        return sum(control.stats()["events"]["handed"])


def test_processes_are_all_of_the_containers_the_main_one_first(stack: ComposeStack) -> None:
    for service, name in (("mysql", "mysql"), ("broker", "redpanda"), ("loadgen", "loadgen")):
        seen = container(stack, name)
        pids = stack.pids([service])[service]
        assert pids[0] == seen.attrs["State"]["Pid"]
        found = {int(row[1]) for row in seen.top()["Processes"]}
        assert found <= set(pids) | {p for p in found if not psutil.pid_exists(p)}
    pids_of = stack.pids(["registry", "broker", "loadgen"])
    assert pids_of["registry"] == pids_of["broker"]
    assert len(pids_of["loadgen"]) > 1  # it has workers


def test_output_goes_to_files_as_it_comes(
    stack: ComposeStack, wait_until: Callable[..., None]
) -> None:
    log = stack.log_of("loadgen")
    assert "Initializing shop database DONE" in log.read_text()
    with Control(stack.settings.reach_address, stack.settings.loadgen_port) as control:
        control.ask("set events_per_second 77")
    wait_until(lambda: "77" in log.read_text(), "the new rate in its log", 5.0)
    whole = log.parent.parent / "docker-compose.log"
    wait_until(lambda: "77" in whole.read_text(), "the new rate in the whole log", 5.0)


def test_a_paused_container_stands_still_and_goes_on(
    stack: ComposeStack, settings: Settings, wait_until: Callable[..., None]
) -> None:
    stack.pause("loadgen")
    account = stack.accounting("loadgen")
    assert account
    before = account.cpu_s()
    time.sleep(0.5)  # nothing must happen meanwhile
    assert account.cpu_s() == before
    assert stack.died() == {}
    stack.resume("loadgen")
    counted = events(settings)
    wait_until(lambda: events(settings) > counted, "more events", 10.0)


def test_a_killed_container_is_missed_by_nobody_and_comes_back(
    stack: ComposeStack, settings: Settings
) -> None:
    stack.kill(["loadgen"])
    assert (stack.pids(["loadgen"]), stack.died()) == ({"loadgen": []}, {})
    stack.restart("loadgen")
    assert len(stack.pids(["loadgen"])["loadgen"]) > 1
    assert events(settings) >= 0
    assert stack.died() == {}


@pytest.mark.parametrize("service", ["mysql", "broker", "registry", "debezium"])
def test_what_would_forget_is_not_killed(stack: ComposeStack, service: str) -> None:
    with pytest.raises(RacetrackError, match=f"{service} can't be killed"):
        stack.kill([service])
    fault = faults.parse(f"kill:{service}@5s") if service != "registry" else None
    if fault:
        with pytest.raises(UsageError, match=rf"in containers, {service} would lose its data"):
            faults.require_possible(fault, [service], stack)


def test_a_stack_that_stands_is_seen_by_others_and_not_cleared(
    stack: ComposeStack, opened: Callable[[], ComposeStack]
) -> None:
    other = opened()
    assert other.running() is None  # it is not marked as left running
    stack.leave_running(EXAMPLE)
    standing = other.running()
    assert standing
    assert (standing.engine, set(standing.expected)) == (EXAMPLE, set(SERVICES))
    assert {name: list(pids)[:1] for name, pids in standing.services.items()} == {
        name: pids[:1] for name, pids in stack.pids(SERVICES).items()
    }
    with pytest.raises(BusyError, match=rf"A stack is up since .*`./race up {EXAMPLE}`"):
        other.prepare(SERVICES, print)


def test_one_that_ends_unasked_is_reported_with_its_log_tail(
    stack: ComposeStack, wait_until: Callable[..., None]
) -> None:
    container(stack, "loadgen").kill()
    wait_until(lambda: bool(stack.died()), "news of its death", 10.0)
    (found,) = stack.died().items()
    assert found[0] == "loadgen"
    assert "exit code 137; the end of its log:" in found[1]
    assert "Load generator on Python" in found[1] or "events" in found[1]


def test_a_container_that_does_not_come_up_is_reported_with_its_log_tail(
    opened: Callable[[], ComposeStack], stack: ComposeStack, tmp_path: Path
) -> None:
    """This test must be the last in this file, because it ends the stack of the others."""
    stack.stop(print)
    broken = ComposeStack(stack.settings.model_copy(update={"shop_users": 0}), find(airgap=True))
    (logs := tmp_path / "stack").mkdir()
    try:
        with pytest.raises(RacetrackError) as failed:
            broken.start(SERVICES, logs, print)
    finally:
        broken.stop(print)
    assert "loadgen did not start: exit code 2; the end of its log:" in str(failed.value)
    assert "SHOP_USERS" in str(failed.value)
    assert opened().running() is None
