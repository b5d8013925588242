"""One experiment: its steps in their order, each recorded, and an end in good order whatever
happens in one of them."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from racetrack.analysis import figures, outcome
from racetrack.errors import RacetrackError, SetupError
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import Counts, Measured, RunArguments, Window
from racetrack.results.verification import Verified
from racetrack.run.experiment import STEPS, VERIFY, Experiment, OpenSession
from racetrack.terminal import Guard, Interrupted, Screen
from racetrack.workloads.load_profile import LoadProfile
from tests.records import verified
from tests.run.made_up import MadeUpEngine, MadeUpStack

COUNTS = Counts(
    handed_over=(4, 3), refused=(0, 0), end_offsets=(4, 3), engine_total=7, engine_drained=True
)
MEASURED = Measured(window=Window(start_ms=1_000, end_ms=2_000), rate_set_ms=500, cpu_s={})
# What the session is told to do, from its start to its end.
WHOLE = [
    "start stack",
    "run demo",
    "rate 5000",
    "faults",
    "settling 20",
    "sample 10",
    "recovery",
    "account",
]


class Session:
    """Notes what it is told to do; `breaks` raises where it is told so."""

    did: list[str]
    breaks: dict[str, BaseException]

    def __init__(self, *_: object) -> None: ...

    def start_stack(self) -> None:
        self._do("start stack")

    def run_demo(self) -> None:
        self._do("run demo")

    def begin_load(self, profile: LoadProfile) -> None:
        self._do(f"load {profile}")

    def set_rate(self, pageviews_per_s: int) -> None:
        self._do(f"rate {pageviews_per_s}")

    def begin_faults(self) -> None:
        self._do("faults")

    def watch(self, seconds: float, what: str) -> None:
        self._do(f"{what} {seconds:g}")

    def sample(self, samples: int, rate_set_ms: int) -> Measured:
        self._do(f"sample {samples}")
        return MEASURED

    def watch_recovery(self) -> None:
        self._do("recovery")

    def sample_memory(self) -> None:
        pass

    def account(self) -> dict[str, Counts]:
        self._do("account")
        return {"made-up": COUNTS}

    def verify(self) -> dict[str, Verified]:
        self._do("verify")
        return {"made-up": Verified.model_validate(verified())}

    def stop(self) -> None:
        self._do("stop")

    def _do(self, what: str) -> None:
        self.did.append(what)
        if what in self.breaks:
            raise self.breaks.pop(what)


Run = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "made-up", "5000")


@pytest.fixture
def run(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs an experiment at 5,000/s to its end; its outcome."""
    Session.did, Session.breaks = [], {}
    monkeypatch.setattr(figures, "results", lambda _: None)
    monkeypatch.setattr(outcome, "run_outcome", lambda _: "ok")

    def run(
        guard: Guard | None = None,
        *,
        verify: bool = False,
        warm_up_s: float = 0.0,
        load: str | None = None,
    ) -> str:
        asked = RunArguments(
            pageviews_per_s=5_000,
            wait_s=20,
            samples=10,
            delay_s=1,
            verify=verify,
            warm_up_s=warm_up_s,
            load=load,
            decide_within_s=60 if load else 0,
        )
        engine, stack = MadeUpEngine(), MadeUpStack()
        screen = Screen(Console(quiet=True))
        experiment = Experiment(
            asked, engine, stack.as_stack(), folder, screen, cast(OpenSession, Session)
        )
        guard = guard or Guard(print)
        may_speed_up = not guard.is_pending
        outcome = experiment.run(guard)
        sped_up = ("speed up", "next start") in stack.did
        assert sped_up == (outcome == "ok" and may_speed_up)
        return outcome

    return run


def test_its_steps_are_done_in_their_order_and_each_is_recorded(
    run: Run, folder: RunFolder
) -> None:
    assert run() == "ok"
    assert Session.did[:-2] == WHOLE
    assert set(Session.did[-2:]) == {"stop"}
    told = read_run(folder.path)
    assert [step.name for step in told.steps] == list(STEPS)
    assert all(step.ended_at for step in told.steps)
    assert told.outcome == "ok"
    assert told.measured == MEASURED.model_copy(update=dict(COUNTS))
    assert "[6/6] stop everything" in (folder.path / "start.log").read_text()


def test_run_json_says_what_was_asked_of_whom(run: Run, folder: RunFolder) -> None:
    run()
    told = read_run(folder.path)
    assert told.asked and (told.asked.pageviews_per_s, told.asked.samples) == (5_000, 10)
    assert told.engine_services == ("manager", "worker")
    assert told.settings["mysql_root_password"] == "**********"
    assert told.versions.keys() == {"racetrack", "python"}


def test_a_verification_is_a_step_of_its_own_before_the_stack_stops(
    run: Run, folder: RunFolder
) -> None:
    run(verify=True)
    assert Session.did[: len(WHOLE) + 1] == [*WHOLE, "verify"]
    told = read_run(folder.path)
    assert [step.name for step in told.steps] == [*STEPS[:-1], VERIFY, STEPS[-1]]
    assert told.verified


def test_to_warm_up_half_the_rate_comes_first(run: Run) -> None:
    run(warm_up_s=30)
    assert Session.did[2:5] == ["rate 2500", "warming up 30", "rate 5000"]


def test_a_load_profile_begins_with_the_samples_after_settling_at_its_first_rate(
    run: Run, folder: RunFolder
) -> None:
    assert run(load="spike 2k 20k 10s") == "ok"
    load = [*WHOLE[:5], "load spike 2k 20k 10s", *WHOLE[5:]]
    assert Session.did[: len(load)] == ["rate 2000" if did == "rate 5000" else did for did in load]
    assert (told := read_run(folder.path).asked) and told.load == "spike 2k 20k 10s"
    said = (folder.path / "start.log").read_text()
    assert "at 5,000 pageviews/s on average, spike 2k 20k 10s (native)" in said
    assert "watch on" not in said


@pytest.mark.parametrize("number", range(len(WHOLE)))
def test_what_fails_ends_the_run_stops_the_stack_and_is_the_outcome(
    run: Run, folder: RunFolder, number: int
) -> None:
    Session.breaks = {WHOLE[number]: RacetrackError("the broker ended")}
    assert run() == "the broker ended"
    assert Session.did[: number + 1] == WHOLE[: number + 1]
    assert set(Session.did[number + 1 :]) == {"stop"}
    told = read_run(folder.path)
    assert told.outcome == "the broker ended"
    assert told.steps[-1].name == STEPS[-1]
    assert all(step.ended_at for step in told.steps)
    assert "The experiment failed: the broker ended" in (folder.path / "start.log").read_text()


def test_a_signal_ends_it_in_good_order_and_run_json_says_so(run: Run, folder: RunFolder) -> None:
    Session.breaks = {"settling 20": Interrupted(signal.SIGINT)}
    with pytest.raises(Interrupted):
        run()
    assert Session.did[-1] == "stop"
    assert read_run(folder.path).outcome == "interrupted by SIGINT"


def test_what_can_not_be_installed_is_raised_for_its_exit_code(run: Run, folder: RunFolder) -> None:
    Session.breaks = {"start stack": SetupError("kafka can't be had")}
    with pytest.raises(SetupError):
        run()
    assert Session.did[-1] == "stop"
    assert read_run(folder.path).outcome == "kafka can't be had"


def test_a_fault_of_ours_is_not_hidden_but_the_stack_is_stopped(
    run: Run, folder: RunFolder
) -> None:
    Session.breaks = {"run demo": ZeroDivisionError("division by zero")}
    with pytest.raises(ZeroDivisionError):
        run()
    assert Session.did[-1] == "stop"
    assert read_run(folder.path).outcome == "division by zero"


def test_a_stack_that_does_not_stop_is_told_to_once_more(run: Run) -> None:
    Session.breaks = {"stop": OSError("no space left")}
    with pytest.raises(OSError, match="no space left"):
        run()
    assert Session.did[-2:] == ["stop", "stop"]


def test_signals_no_longer_end_it_once_all_was_measured(run: Run, folder: RunFolder) -> None:
    guard = Guard(print)
    assert run(guard) == "ok"
    guard.handle(signal.SIGINT, None)  # raises nothing: cleaning up is finished
    with pytest.raises(Interrupted):
        guard.rearm()


def test_a_signal_in_the_last_step_leaves_the_next_start_as_it_is(run: Run) -> None:
    guard = Guard(print)
    guard.disarm()
    guard.handle(signal.SIGINT, None)
    assert run(guard) == "ok"
