"""Tests of one fresh run: checks before its folder is created, steps in order, each recorded, and
an orderly end whatever happens."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from racetrack.config import load
from racetrack.errors import BusyError, RacetrackError, SetupError, UsageError
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import THROTTLED, RunArguments
from racetrack.run import experiment, lifecycle
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
VOID = "Void: in the measured window other programs used 9.0 % of a core (more than 5 %)."
TOO_SMALL = f"{THROTTLED} of 0.7 cores is too small."


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
    assert (arguments := record.arguments)
    assert (arguments.events_per_s, arguments.samples) == (5_000, 10)
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
    ("at", "failure", "outcome"),
    [
        ("run_demo", Interrupted(signal.SIGINT), "interrupted by SIGINT"),
        ("run_demo", SetupError("kafka can't be had"), "kafka can't be had"),
        ("run_demo", ZeroDivisionError("division by zero"), "division by zero"),
        ("stop", OSError("no space left"), None),  # stopping is tried twice
    ],
)
def test_signals_missing_parts_and_bugs_are_raised_after_an_orderly_end(
    bench: Bench, at: str, failure: BaseException, outcome: str | None
) -> None:
    bench.failures = {at: failure}
    with pytest.raises(type(failure)):
        bench.run()
    assert bench.calls[-2:] == ["stop", "stop"]
    assert outcome in (None, read_run(bench.folder.path).outcome)


def test_a_signal_after_the_measurement_ends_only_what_follows(bench: Bench) -> None:
    guard = Guard(print)
    guard.disarm()
    guard.handle(signal.SIGINT, None)
    assert bench.run(guard) == "ok"
    assert not bench.sped_up
    with pytest.raises(Interrupted):
        guard.rearm()


def run_once(stack: FakeStack, logs: Path, *faults: str) -> Path:
    """Make a run on this stack without executing its experiment; return its folder."""
    return experiment.run_once(
        "fake",
        RunArguments(events_per_s=500, wait_s=1, samples=1, delay_s=1, faults=faults),
        load({"LOGS_FOLDER": str(logs)}),
        Screen(Console(quiet=True)),
        Guard(print),
        find_engine=lambda _: FakeEngine(),
        open_stack=lambda *_: stack.as_stack(),
        run=lambda *_: stack.did.append(("run", "experiment")),
    )


def test_the_stack_is_made_ready_and_the_experiment_run_in_a_folder_of_its_own(
    tmp_path: Path,
) -> None:
    stack = FakeStack()
    folder = run_once(stack, tmp_path, "kill:mysql@1s", "kill:engine@2s")
    assert stack.prepared == ["mysql", "broker", "loadgen", "debezium", "manager", "worker"]
    assert stack.did == [("run", "experiment")]
    assert folder.name.endswith("_UTC_fake_500")
    assert (folder / "run.json").exists()


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("pause:registry@1s+1s", "Fake runs without registry"),
        ("kill:mysql@1s", "in containers, mysql would lose its data"),
    ],
)
def test_a_fault_that_can_not_be_done_is_refused_before_anything_is_prepared(
    tmp_path: Path, fault: str, why: str
) -> None:
    stack = FakeStack(runtime="compose")
    with pytest.raises(UsageError, match=why):
        run_once(stack, tmp_path / "logs", fault)
    assert (stack.prepared, stack.did) == ([], [])
    assert not (tmp_path / "logs").exists()


def test_a_run_that_can_not_begin_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(*_: object) -> None:
        raise BusyError("a stack is up")

    monkeypatch.setattr(FakeStack, "prepare", prepare)
    with pytest.raises(BusyError):
        run_once(FakeStack(), tmp_path / "logs")
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("outcomes", "runs"),
    [
        (["ok"], 1),
        ([VOID, "ok"], 2),
        ([VOID, VOID, "The broker ended"], 3),
        ([VOID] * 4, 4),
        ([VOID, TOO_SMALL], 2),
    ],
)
def test_a_void_run_is_repeated_three_times_at_most_and_it_is_said(
    tmp_path: Path, outcomes: list[str], runs: int
) -> None:
    done: list[Path] = []

    def once() -> Path:
        folder = RunFolder.create(tmp_path, "steady", str(len(done)))
        with folder.recording() as run:
            run.outcome = outcomes[len(done)]
        done.append(folder.path)
        return folder.path

    screen = Screen(Console(quiet=True))
    with screen.copied_to((tmp_path / "said").open("w")):
        last = lifecycle.run_until_not_void(once, screen, Guard(print))
    assert (last, len(done)) == (done[-1], runs)
    said = (tmp_path / "said").read_text().splitlines()
    assert len(said) == runs - 1
    assert all(line.startswith(f"{VOID} Again, repeat ") for line in said)
