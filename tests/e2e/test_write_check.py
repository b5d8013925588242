"""End-to-end tests that a run ends at once, with the reason, if the broker refuses writes or drops
what acks=0 sends, but not if the broker is slow."""

import time
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from rich.console import Console

from racetrack import terminal
from racetrack.config import Settings, load
from racetrack.engines import calibration_engine
from racetrack.engines.contract import Engine
from racetrack.machine_lock import machine_lock
from racetrack.probes.write_check import WriteCheckError
from racetrack.results.folder import RunFolder
from racetrack.results.run import RunArguments
from racetrack.run.checks import check_writes, make_ready
from racetrack.run.experiment import STEPS, Experiment
from racetrack.stack.contract import OnReady, Say, Stack, ignore
from racetrack.stack.native.stack import NativeStack
from racetrack.terminal import Screen
from tests.e2e.loadgen_stack import LoadgenStack
from tests.e2e.shared import NothingLeft
from tests.run_json import read_run

RATE = 5_000
# Largest size of a batch, in bytes. A batch has 61 bytes before its first record, so 60 permits
# none. 250 permits one pageview, which takes about 170, but not the pageviews that RATE brings to a
# partition in 5 ms, which take over twice as much.
NONE_FITS, ONE_FITS = "60", "250"


def limit_messages(stack: Stack, name: str, limit: str, what: ResourceType, which: str) -> None:
    """Limit the size of messages of a topic, or of the whole broker."""
    entry = ConfigEntry(name, limit, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(what, which, incremental_configs=[entry])
    client = AdminClient(stack.endpoints.kafka.librdkafka({"log_level": 2}))
    for changed in client.incremental_alter_configs([resource]).values():
        changed.result(10)


def tampering(limit: str) -> Engine:
    """Return an engine that, while its demo is loaded, limits the size of the topic's messages, so
    that the broker drops the load."""
    engine = copy(calibration_engine())
    engine.load_demo = lambda stack: limit_messages(  # type: ignore[method-assign]
        stack, "max.message.bytes", limit, ResourceType.TOPIC, "pageviews"
    )
    return engine


class Refusing(NativeStack):
    """A stack whose broker accepts no records, from as soon as it is up."""

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        super().start(services, logs, say, on_ready)
        limit_messages(self, "message.max.bytes", NONE_FITS, ResourceType.BROKER, "1")


@pytest.fixture
def guard() -> Iterator[terminal.Guard]:
    with machine_lock(), terminal.guarded(print) as guard:
        yield guard


def outcome(
    engine: Engine, stack: Stack, logs: Path, guard: terminal.Guard
) -> tuple[list[str], str]:
    """Run an experiment; return the steps that it has done, and its outcome."""
    make_ready(engine, stack, print)
    folder = RunFolder.create(logs, engine.name, str(RATE))
    arguments = RunArguments(events_per_s=RATE, wait_s=60.0, samples=10, delay_s=1.0)
    result = Experiment(arguments, engine, stack, folder, Screen(Console())).run(guard)
    run = read_run(folder.path)
    assert run["outcome"] == result
    return [step["name"] for step in run["steps"]], result


@pytest.mark.parametrize("limit", [NONE_FITS, ONE_FITS])
def test_a_broker_that_drops_the_load_ends_the_run_when_the_rate_is_set(
    limit: str, tmp_path: Path, guard: terminal.Guard, nothing_left: NothingLeft
) -> None:
    stack = NativeStack(load())
    steps, message = outcome(tampering(limit), stack, tmp_path, guard)
    assert steps == [*STEPS[:3], STEPS[-1]]  # it neither settled nor took samples
    assert message.startswith(f"The broker at {stack.endpoints.kafka} does not keep the events")
    assert f"max.message.bytes={limit}" in message
    nothing_left()


def test_a_broker_that_refuses_ends_the_run_before_the_demo(
    settings: Settings, tmp_path: Path, guard: terminal.Guard, nothing_left: NothingLeft
) -> None:
    stack = Refusing(settings)
    steps, message = outcome(calibration_engine(), stack, tmp_path, guard)
    assert steps == [STEPS[0], STEPS[-1]]
    assert message.startswith(f"The broker at {stack.endpoints.kafka} refuses writes")
    assert "MSG_SIZE_TOO_LARGE" in message and "max.message.bytes" in message
    nothing_left()


@pytest.mark.parametrize("rate", [2_000_000, 0])
def test_more_than_the_machine_can_take_and_no_load_pass(loadgen: LoadgenStack, rate: int) -> None:
    loadgen.rates(rate)
    try:
        check_writes(loadgen.native, lambda: None)
    finally:
        loadgen.rates(0)


def test_a_broker_that_hangs_ends_the_check_within_10_s(loadgen: LoadgenStack) -> None:
    loadgen.rates(RATE)
    loadgen.native.pause("broker")
    began_s = time.monotonic()
    try:
        with pytest.raises(WriteCheckError, match="did not acknowledge a record within 5 s"):
            check_writes(loadgen.native, lambda: None)
        assert time.monotonic() - began_s < 10
    finally:
        loadgen.native.resume("broker")
        loadgen.rates(0)
