"""`./race up`: the stack stands once it takes writes, and is taken down if it does not come up."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from racetrack import cli, engines
from racetrack.run import checks
from racetrack.stack import runtime
from racetrack.stack.contract import Unmeasurable
from tests.run.made_up import MadeUpEngine, MadeUpStack
from tests.some_engines import EXAMPLE


def up(monkeypatch: pytest.MonkeyPatch, stack: MadeUpStack) -> Result:
    """`./race up` with a made-up engine on this stack."""

    def open_stack(*_: object, to_play: bool) -> object:
        assert to_play
        return stack

    monkeypatch.setattr(runtime, "open_stack", open_stack)
    monkeypatch.setattr(engines, "find_engine", lambda _: MadeUpEngine())
    return CliRunner().invoke(cli.race, ["up", EXAMPLE])


@pytest.mark.parametrize("unmeasurable", [None, Unmeasurable("They are in there", "Go inside")])
def test_up_says_at_its_end_what_can_not_be_measured(
    monkeypatch: pytest.MonkeyPatch, unmeasurable: Unmeasurable | None
) -> None:
    checked: list[object] = []
    monkeypatch.setattr(checks, "check_writes", lambda of, *_: checked.append(of))
    stack = MadeUpStack(runtime="compose")
    stack.unmeasurable = unmeasurable
    result = up(monkeypatch, stack)
    assert result.exit_code == 0, result.output
    assert checked == [stack]
    assert [did for did, _ in stack.did] == ["start", "leave running"]
    assert "IDE: there" in result.output
    last = result.output.splitlines()[-1]
    assert last == (
        "Good for playing only. They are in there: CPU and memory can't be measured, and"
        " `./run_experiment.sh` refuses. Go inside."
        if unmeasurable
        else "Logs: logs. Take it down: ./race down"
    )


def test_up_ends_when_a_service_dies_while_writes_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check_writes(_stack: object, meanwhile: Callable[[], None]) -> None:
        meanwhile()

    monkeypatch.setattr(checks, "check_writes", check_writes)
    stack = MadeUpStack(runtime="compose")
    stack.ended = {"broker": "exit code 1. Its last words: no space left"}
    result = up(monkeypatch, stack)
    assert result.exit_code == 1
    assert "broker ended during the run: exit code 1" in result.output
    assert stack.did[-1] == ("stop", "all")
