"""What the tests of commands share: the machine is theirs, and runs end as they say."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from racetrack.results.sweep import Sweep
from racetrack.run import sweep
from tests.records import run_json

Ended = Callable[..., Path]


@pytest.fixture(autouse=True)
def the_machine_is_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run may hold the real lock."""
    monkeypatch.setenv("MACHINE_LOCK", str(tmp_path / "machine.lock"))


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    """Makes the folder of a run with this outcome, and other changes to its record."""

    def make(outcome: str, changes: Mapping[str, Any] | None = None) -> Path:
        record = run_json({"outcome": outcome, **(changes or {})})
        (tmp_path / "run.json").write_text(json.dumps(record))
        return tmp_path

    return make


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Sweep]:
    """The sweeps that were begun, each in a folder called by its number; none is carried out."""
    begun: list[Sweep] = []

    def begin(plan: Sweep) -> Path:
        begun.append(plan)
        return Path(f"logs/{len(begun)}")

    monkeypatch.setattr(sweep, "begin", begin)
    monkeypatch.setattr(sweep, "carry_out", lambda *_: True)
    return begun
