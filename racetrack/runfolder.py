"""`logs/<tag>/`: the only door to what a run leaves behind."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

SCHEMA_VERSION = 1


def utc_now() -> str:
    """Now as ISO 8601 in UTC with milliseconds, as every time in `run.json` is written."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file that nobody ever sees half written."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(json.dumps(value, indent=2) + "\n")
    unfinished.replace(path)


class RunFolder:
    """One run's folder. `run.json` is rewritten whole at every change, so that a run that was
    killed still tells how far it came."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run: dict[str, Any] = {}

    @classmethod
    def create(cls, logs: Path, engine: str, label: str) -> "RunFolder":
        """Make the folder of a run that begins now."""
        folder = cls(named_folder(logs, f"{engine}_{label}"))
        folder.stack.mkdir()
        folder.record({"schema_version": SCHEMA_VERSION, "tag": folder.tag, "engine": engine})
        return folder

    @property
    def tag(self) -> str:
        """The folder's name, which names the run everywhere."""
        return self.path.name

    @property
    def stack(self) -> Path:
        """Where every service's own log goes."""
        return self.path / "stack"

    def record(self, facts: Mapping[str, Any]) -> None:
        """Merge facts into `run.json`; nested mappings are merged, everything else replaced."""
        _merge(self._run, facts)
        write_json(self.path / "run.json", self._run)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Record a step with its start, and its end when it is left, however it is left."""
        step: dict[str, Any] = {"name": name, "started_at": utc_now(), "ended_at": None}
        steps = [*self._run.get("steps", []), step]
        self.record({"steps": steps})
        try:
            yield
        finally:
            step["ended_at"] = utc_now()
            self.record({"steps": steps})

    def open_for_lines(self, name: str) -> TextIO:
        """A new text file in the folder, written through line by line."""
        return (self.path / name).open("x", buffering=1, encoding="utf-8")


def named_folder(logs: Path, label: str) -> Path:
    """Make `logs/2026.11.20.18.04.43_UTC_<label>/`; in the next second if that is taken."""
    logs.mkdir(parents=True, exist_ok=True)
    while True:
        now = datetime.now(UTC)
        folder = logs / f"{now:%Y.%m.%d.%H.%M.%S}_UTC_{label}"
        try:
            folder.mkdir()
        except FileExistsError:
            time.sleep(1 - now.microsecond / 1e6)
        else:
            return folder


def shown(path: Path) -> str:
    """A path as a person would type it from where they are."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def read_run(path: Path) -> dict[str, Any]:
    """What `run.json` of a run folder says."""
    run: dict[str, Any] = json.loads((path / "run.json").read_text())
    return run


def _merge(into: dict[str, Any], facts: Mapping[str, Any]) -> None:
    for key, value in facts.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
