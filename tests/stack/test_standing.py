"""A stack that was put up on purpose says what for, whatever is set when it is asked."""

from pathlib import Path

import pytest

from racetrack.settings import load
from racetrack.stack import runtime
from racetrack.stack.contract import Standing
from racetrack.stack.standing import StandingNote
from tests.run.made_up import MadeUpStack


class NotedStack(MadeUpStack):
    """It stands as its note says."""

    def __init__(self, note: StandingNote) -> None:
        super().__init__()
        self._note = note

    def standing(self) -> Standing | None:
        return self._note.read({"mysql": [70]})


def test_it_keeps_the_workload_that_it_was_put_up_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = StandingNote(tmp_path)
    note.write("made-up", "another", ["mysql", "broker"])
    monkeypatch.setattr(runtime, "stacks_that_may_stand", lambda _: [NotedStack(note).as_stack()])
    found = runtime.standing_stack(load())
    assert found
    stack, standing = found
    assert (standing.engine, standing.workload) == ("made-up", "another")
    assert standing.expected == ["broker", "mysql"]
    assert stack.settings.workload == "another"
    assert load().workload != "another"
