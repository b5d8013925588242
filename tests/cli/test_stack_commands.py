"""`./race up`, `status` and `down`: what they print and their exit codes."""

import io
from collections.abc import Callable
from uuid import uuid4

import pytest
from rich.console import Console

from racetrack.cli.stack import bring_up, describe_running, describe_use
from racetrack.errors import RacetrackError
from racetrack.stack.contract import RunningStack, Unmeasurable
from racetrack.terminal import Screen, guarded
from tests.cli.conftest import invoke
from tests.run.fakes import FakeEngine, FakeStack
from tests.some_engines import EXAMPLE

SINCE = "2026-11-22T08:00:00Z"


def up(stack: FakeStack, check_writes: Callable[..., None]) -> str:
    """Bring up this stack for a fake engine, as `./race up` does; return what it prints."""
    output = io.StringIO()
    screen, engine = Screen(Console(file=output, width=200)), FakeEngine()
    with guarded(screen.say) as guard:
        bring_up(engine, stack.as_stack(), screen, guard, check_writes)
    describe_use(engine, stack.as_stack(), screen)
    return output.getvalue()


@pytest.mark.parametrize("unmeasurable", [None, Unmeasurable("They are in there", "Go inside")])
def test_up_leaves_the_stack_running_and_reports_what_can_not_be_measured(
    unmeasurable: Unmeasurable | None,
) -> None:
    checked: list[object] = []
    stack = FakeStack(runtime="compose")
    stack.unmeasurable = unmeasurable
    printed = up(stack, lambda of, *_: checked.append(of))
    assert checked == [stack]
    assert [did for did, _ in stack.did] == ["start", "leave_running"]
    assert ("CPU and memory can't be measured" in printed) == bool(unmeasurable)
    assert "./race down" in printed


def test_up_ends_when_a_service_dies_while_writes_are_checked() -> None:
    stack = FakeStack(runtime="compose")
    stack.ended = {"broker": "exit code 1. Its last words: no space left"}
    with pytest.raises(RacetrackError, match="broker ended during the run: exit code 1"):
        up(stack, lambda _, while_waiting: while_waiting())
    assert stack.did[-1] == ("stop", "all")


def test_status_names_what_runs_and_what_has_ended() -> None:
    def status(**running: list[int]) -> tuple[bool, str]:
        stack = RunningStack("native", EXAMPLE, "shop", SINCE, ["broker", "mysql"], running)
        lines: list[str] = []
        return describe_running(stack, lines.append), "\n".join(lines)

    is_complete, text = status(mysql=[70, 71], broker=[])
    assert is_complete and "70, 71" in text
    is_complete, text = status(mysql=[70])
    assert not is_complete and "since: broker" in text


@pytest.mark.parametrize(("command", "code"), [("status", 1), ("verify --json -", 2), ("down", 0)])
def test_without_a_stack_the_commands_say_so(
    command: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACK_NAME", f"none-{uuid4().hex[:8]}")
    result = invoke(command)
    assert result.exit_code == code and "No stack is up." in result.output, result.output
