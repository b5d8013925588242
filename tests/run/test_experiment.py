"""Tests of one experiment: steps in order, each recorded, and an orderly end whatever happens."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from racetrack.errors import RacetrackError, SetupError
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import RunArguments
from racetrack.run.experiment import STEPS, VERIFY, Experiment
from racetrack.run.session import Session
from racetrack.terminal import Guard, Interrupted, Screen
from tests.records import verified
from tests.report.folders import RIGHT, PlayedBack, RunSpec
from tests.run.fakes import FakeEngine, FakeStack

# Calls to the session from its start to its end.
WHOLE = [
    "start_stack",
    "run_demo",
    "set_rate 5000",
    "begin_faults",
    "watch 20.0",
    "sample 10",
    "watch_recovery",
    "sample_memory",
    "account",
]
SPIKE = "spike 2k 20k 10s"


class Observed:
    """A played-back session that records the calls to it. A call raises its error in `failures`."""

    def __init__(self, session: PlayedBack, failures: dict[str, BaseException]) -> None:
        self._session, self._failures = session, failures
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: object) -> Any:
            call = " ".join([name, *map(str, arguments[:1])])
            self.calls.append(call)
            if call in self._failures:
                raise self._failures.pop(call)
            return getattr(self._session, name)(*arguments)

        return call


class Bench:
    """Runs an experiment at 5,000/s to its end."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder, self.stack = folder, FakeStack()
        self.failures: dict[str, BaseException] = {}
        self.calls: list[str] = []

    def run(self, guard: Guard | None = None, **arguments: Any) -> str:
        spec = RunSpec(
            engine="fake",
            rate=2_000 if "load" in arguments else 5_000,
            window_s=10,
            verified=verified(users=RIGHT),
            arguments=arguments,
        )
        observed = Observed(PlayedBack(spec, self.folder), self.failures)
        self.calls = observed.calls
        return Experiment(
            RunArguments(events_per_s=5_000, wait_s=20, samples=10, delay_s=1, **arguments),
            FakeEngine(),
            self.stack.as_stack(),
            self.folder,
            Screen(Console(quiet=True)),
            lambda *_: cast(Session, observed),
        ).run(guard or Guard(print))

    @property
    def sped_up(self) -> bool:
        return ("speed up", "next start") in self.stack.did


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(RunFolder.create(tmp_path, "fake", "5000"))


def test_its_steps_are_done_in_their_order_and_each_is_recorded(bench: Bench) -> None:
    assert bench.run() == "ok"
    assert bench.calls == [*WHOLE, "write_live_heaps", "stop", "stop"]
    assert bench.sped_up
    record = read_run(bench.folder.path)
    assert [step.name for step in record.steps] == list(STEPS)
    assert all(step.ended_at for step in record.steps)
    assert (record.outcome, record.engine_services) == ("ok", ("manager", "worker"))
    assert record.arguments and (record.arguments.events_per_s, record.arguments.samples) == (
        5_000,
        10,
    )
    assert record.measured and record.measured.engine_drained
    assert record.settings["mysql_root_password"] == "**********"
    assert record.versions.keys() == {"racetrack", "python"}
    assert "[6/6] stop everything" in (bench.folder.path / "start.log").read_text()


def test_half_the_rate_comes_first_to_warm_up_and_a_verification_is_a_step(bench: Bench) -> None:
    bench.run(warm_up_s=30, verify=True)
    assert bench.calls[2:5] == ["set_rate 2500", "watch 30.0", "set_rate 5000"]
    assert bench.calls[-4:] == ["verify", "write_live_heaps", "stop", "stop"]
    record = read_run(bench.folder.path)
    assert [step.name for step in record.steps] == [*STEPS[:-1], VERIFY, STEPS[-1]]
    assert record.verified


def test_a_load_profile_begins_with_the_samples_after_settling_at_its_first_rate(
    bench: Bench,
) -> None:
    assert bench.run(load=SPIKE, decide_within_s=60) == "ok"
    assert bench.calls[2] == "set_rate 2000"
    assert bench.calls[4:7] == ["watch 20.0", f"begin_load {SPIKE}", "sample 10"]
    assert (arguments := read_run(bench.folder.path).arguments) and arguments.load == SPIKE


@pytest.mark.parametrize("number", range(len(WHOLE)))
def test_a_failure_ends_the_run_stops_the_stack_and_is_the_outcome(
    bench: Bench, number: int
) -> None:
    bench.failures = {WHOLE[number]: RacetrackError("the broker ended")}
    assert bench.run() == "the broker ended"
    assert bench.calls == [*WHOLE[: number + 1], "stop", "stop"]
    assert not bench.sped_up
    record = read_run(bench.folder.path)
    assert record.outcome == "the broker ended"
    assert record.steps[-1].name == STEPS[-1]
    assert all(step.ended_at for step in record.steps)


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (Interrupted(signal.SIGINT), "interrupted by SIGINT"),
        (SetupError("kafka can't be had"), "kafka can't be had"),
        (ZeroDivisionError("division by zero"), "division by zero"),
    ],
)
def test_signals_missing_parts_and_bugs_are_raised_after_an_orderly_end(
    bench: Bench, failure: BaseException, outcome: str
) -> None:
    bench.failures = {"run_demo": failure}
    with pytest.raises(type(failure)):
        bench.run()
    assert bench.calls[-1] == "stop"
    assert read_run(bench.folder.path).outcome == outcome


def test_stopping_the_stack_is_tried_twice(bench: Bench) -> None:
    bench.failures = {"stop": OSError("no space left")}
    with pytest.raises(OSError, match="no space left"):
        bench.run()
    assert bench.calls[-2:] == ["stop", "stop"]


def test_a_signal_after_the_measurement_ends_only_what_follows(bench: Bench) -> None:
    guard = Guard(print)
    guard.disarm()
    guard.handle(signal.SIGINT, None)
    assert bench.run(guard) == "ok"
    assert not bench.sped_up
    with pytest.raises(Interrupted):
        guard.rearm()
