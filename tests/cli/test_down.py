"""`./race down`: whatever may stand is stopped, and it says what that was."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.stack import runtime


class Stops:
    """A stack that says this while it stops."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines

    def stop(self, say: Callable[[str], None]) -> None:
        for line in self._lines:
            say(line)


@pytest.mark.parametrize(
    ("stacks", "says"),
    [
        ([Stops("  mysql ended", "  broker ended"), Stops()], "mysql ended\nbroker ended\n"),
        ([Stops(), Stops()], "No stack is up.\n"),
    ],
)
def test_every_stack_that_may_stand_is_stopped(
    monkeypatch: pytest.MonkeyPatch, stacks: list[Stops], says: str
) -> None:
    monkeypatch.setattr(runtime, "possible_stacks", lambda _: stacks)
    result = CliRunner().invoke(cli.race, ["down"])
    assert (result.exit_code, result.output) == (0, says)
