"""`./race up`, `status`, `down`, `images` and `calibrate`: what they print and their exit codes."""

from collections.abc import Callable
from typing import NoReturn

import pytest
from click.testing import Result

from racetrack.analysis.calibration import Finding
from racetrack.errors import SetupError
from racetrack.stack.contract import RunningStack, Unmeasurable
from tests.cli.conftest import invoke
from tests.run.made_up import MadeUpEngine, MadeUpStack
from tests.some_engines import EXAMPLE

SINCE = "2026-11-22T08:00:00Z"
Say = Callable[[str], None]


def up(stack: MadeUpStack, check_writes: Callable[..., None]) -> Result:
    """`./race up` with a fake engine on this stack."""
    return invoke(
        f"up {EXAMPLE}",
        open_stack=lambda *_, to_play: stack if to_play else None,
        find_engine=lambda _: MadeUpEngine(),
        check_writes=check_writes,
    )


@pytest.mark.parametrize("unmeasurable", [None, Unmeasurable("They are in there", "Go inside")])
def test_up_leaves_the_stack_running_and_reports_what_can_not_be_measured(
    unmeasurable: Unmeasurable | None,
) -> None:
    checked: list[object] = []
    stack = MadeUpStack(runtime="compose")
    stack.unmeasurable = unmeasurable
    result = up(stack, lambda of, *_: checked.append(of))
    assert result.exit_code == 0, result.output
    assert checked == [stack]
    assert [did for did, _ in stack.did] == ["start", "leave running"]
    assert "IDE: there" in result.output
    assert ("CPU and memory can't be measured" in result.output) == bool(unmeasurable)
    assert "Take it down: ./race down" in result.output


def test_up_ends_when_a_service_dies_while_writes_are_checked() -> None:
    stack = MadeUpStack(runtime="compose")
    stack.ended = {"broker": "exit code 1. Its last words: no space left"}
    result = up(stack, lambda _, meanwhile: meanwhile())
    assert result.exit_code == 1
    assert "broker ended during the run: exit code 1" in result.output
    assert stack.did[-1] == ("stop", "all")


@pytest.mark.parametrize(
    ("services", "code", "says"),
    [
        ({"mysql": [70, 71], "broker": []}, 0, "  mysql      pid 70, 71\n"),
        ({"mysql": [70, 71], "broker": []}, 0, "  broker     running\n"),
        ({"mysql": [70]}, 1, "Ended since: broker."),
        (None, 1, "No stack is up. Start one with `./race up ENGINE`."),
    ],
)
def test_status_names_what_runs_and_what_has_ended(
    services: dict[str, list[int]] | None, code: int, says: str
) -> None:
    expected = ["broker", "mysql"]
    stack = services and RunningStack("native", EXAMPLE, "shop", SINCE, expected, services)
    result = invoke("status", running_stack=lambda _: stack and (None, stack))
    assert result.exit_code == code
    assert says in result.output


class Stops:
    """A stack that prints these lines while it stops."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines

    def stop(self, say: Say) -> None:
        for line in self._lines:
            say(line)


@pytest.mark.parametrize(
    ("stacks", "says"),
    [
        ([Stops("  mysql ended"), Stops("  broker ended")], "mysql ended\nbroker ended\n"),
        ([Stops(), Stops()], "No stack is up.\n"),
    ],
)
def test_down_stops_every_stack_that_may_run(stacks: list[Stops], says: str) -> None:
    result = invoke("down", possible_stacks=lambda _: stacks)
    assert (result.exit_code, result.output) == (0, says)


def test_images_prints_what_it_builds_and_what_is_missing() -> None:
    result = invoke("images", build=lambda _, say: say("built"))
    assert (result.exit_code, result.output) == (0, "built\n")

    def missing(*_: object) -> NoReturn:
        raise SetupError("debootstrap is missing")

    result = invoke("images", build=missing)
    assert result.exit_code == 3
    assert "Error: debootstrap is missing\n" in result.output


@pytest.mark.parametrize(("within", "code"), [([True, True], 0), ([True, False], 1)])
def test_calibrate_succeeds_only_if_every_row_is_within_its_bound(
    within: list[bool], code: int
) -> None:
    found = [Finding("delay of 0 ms", "median lag 6 ms", "± 25 ms", within=each) for each in within]
    assert invoke("calibrate", run=lambda *_: found).exit_code == code
