"""What the tests of commands share: the machine is theirs, and runs end as they say."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from racetrack import cli
from tests.records import run_json

Ended = Callable[[str], Path]


@pytest.fixture(autouse=True)
def the_machine_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may hold the real lock."""
    for module in vars(cli).values():
        if hasattr(module, "machine_lock"):
            monkeypatch.setattr(module, "machine_lock", nullcontext)


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    """Makes the folder of a run with this outcome."""

    def make(outcome: str) -> Path:
        (tmp_path / "run.json").write_text(json.dumps(run_json({"outcome": outcome})))
        return tmp_path

    return make
