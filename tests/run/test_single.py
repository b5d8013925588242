"""Tests of one fresh run: all checks that are possible precede the creation of its folder."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from racetrack import terminal
from racetrack.config import load
from racetrack.errors import BusyError, UsageError
from racetrack.results.folder import RunFolder
from racetrack.results.run import THROTTLED, RunArguments
from racetrack.run import experiment, lifecycle
from racetrack.terminal import Screen
from tests.run.fakes import FakeEngine, FakeStack

Once = Callable[..., Path]
VOID = "Void: in the measured window other programs used 9.0 % of a core (more than 5 %)."


class BusyStack(FakeStack):
    """A stack whose name is already in use."""

    def prepare(self, *_: object) -> None:
        raise BusyError("a stack is up")


@pytest.fixture
def stack() -> FakeStack:
    return FakeStack()


@pytest.fixture
def once(stack: FakeStack, tmp_path: Path) -> Once:
    return once_on(stack, tmp_path)


def once_on(stack: FakeStack, tmp_path: Path) -> Once:
    """Return a function that makes a run on this stack, without executing its experiment."""

    def run(*faults: str) -> Path:
        arguments = RunArguments(events_per_s=500, wait_s=1, samples=1, delay_s=1, faults=faults)
        settings = load({"LOGS_FOLDER": str(tmp_path / "logs")})
        screen = Screen(Console(quiet=True))
        return experiment.run_once(
            "fake",
            arguments,
            settings,
            screen,
            terminal.Guard(print),
            find_engine=lambda _: FakeEngine(),
            open_stack=lambda *_: stack.as_stack(),
            run=lambda *_: stack.did.append(("run", "experiment")),
        )

    return run


def test_the_stack_is_made_ready_and_the_experiment_run_in_a_folder_of_its_own(
    once: Once, stack: FakeStack
) -> None:
    folder = once("kill:mysql@1s", "kill:engine@2s")
    assert stack.prepared == ["mysql", "broker", "loadgen", "debezium", "manager", "worker"]
    assert stack.did == [("run", "experiment")]
    assert folder.name.endswith("_UTC_fake_500")
    assert (folder / "run.json").exists()


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("kill:mysql", "Write kill:SERVICE@10s"),
        ("pause:registry@1s+1s", "Fake runs without registry"),
        ("kill:mysql@1s", "in containers, mysql would lose its data"),
    ],
)
def test_a_fault_that_can_not_be_done_is_refused_before_anything_is_prepared(
    once: Once, stack: FakeStack, tmp_path: Path, fault: str, why: str
) -> None:
    stack.runtime = "compose"
    with pytest.raises(UsageError, match=why):
        once(fault)
    assert (stack.prepared, stack.did) == ([], [])
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("outcomes", "runs"),
    [
        (["ok"], 1),
        (["The broker ended"], 1),
        ([VOID, "ok"], 2),
        ([VOID, VOID, "The broker ended"], 3),
        ([VOID] * 4, 4),
        ([f"{THROTTLED} of 0.7 cores is too small."], 1),
        ([VOID, f"{THROTTLED} of 0.7 cores is too small."], 2),
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
        last = lifecycle.run_until_not_void(once, screen, terminal.Guard(print))
    assert (last, len(done)) == (done[-1], runs)
    said = (tmp_path / "said").read_text().splitlines()
    assert len(said) == runs - 1
    assert all(line.startswith(f"{VOID} Again, repeat ") for line in said)


def test_a_run_that_can_not_begin_leaves_no_folder(
    tmp_path: Path,
) -> None:
    with pytest.raises(BusyError):
        once_on(BusyStack(), tmp_path)()
    assert not (tmp_path / "logs").exists()
