"""Creation, writing and reading of the run folder `logs/<tag>/`."""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from racetrack.clock import utc_now
from racetrack.errors import UsageError
from racetrack.results.json_file import write_whole
from racetrack.results.run import SCHEMA_VERSION, RunRecord, Step

Record = TypeVar("Record", bound=BaseModel)


class RunFolder:
    """The folder of a run. `run.json` is rewritten at every change, so it is up to date even if the
    run is killed."""

    def __init__(self, path: Path, engine: str) -> None:
        self.path = path
        self._run = RunRecord(
            schema_version=SCHEMA_VERSION,
            run_id=str(uuid.uuid4()),
            tag=path.name,
            engine=engine,
        )
        self._write()

    @classmethod
    def create(cls, logs: Path, engine: str, label: str) -> "RunFolder":
        """Create the folder of a new run, named by the current time."""
        path = named_folder(logs, f"{engine}_{label}")
        (path / "stack").mkdir()
        return cls(path, engine)

    @property
    def tag(self) -> str:
        """Name of the folder, which identifies the run."""
        return self.path.name

    @property
    def stack(self) -> Path:
        """Folder of the services' logs."""
        return self.path / "stack"

    @contextmanager
    def recording(self) -> Iterator[RunRecord]:
        """Yield the record for changes; at the end of the context, write `run.json` unless an error
        occurred."""
        yield self._run
        self._write()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Record the start and the end of a step in `run.json`, even if the step fails."""
        step = Step(name=name, started_at=utc_now(), ended_at=None)
        with self.recording() as run:
            run.steps = (*run.steps, step)
        try:
            yield
        finally:
            with self.recording():
                step.ended_at = utc_now()

    def open_for_lines(self, name: str) -> TextIO:
        """Create a text file in the folder and return it open for writing. Every line is
        flushed."""
        return (self.path / name).open("x", buffering=1, encoding="utf-8")

    def _write(self) -> None:
        write_whole(self.path / "run.json", self._run.model_dump_json(indent=2, exclude_unset=True))


def named_folder(logs: Path, label: str) -> Path:
    """Create a folder such as `logs/2026.11.20.18.04.43_UTC_<label>/`. If it exists, use the time
    one second later."""
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
    """Return a path as text, relative to the current folder if it is inside that folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def read_run(path: Path) -> RunRecord:
    """Read `run.json` of a run folder.

    Raises:
        UsageError: the file has another version, or is not valid.
    """
    return read_record(path / "run.json", RunRecord)


def read_record(file: Path, model: type[Record]) -> Record:
    """Read a JSON file into a model of the same schema version. Unknown keys are ignored.

    Raises:
        UsageError: the file has another version, or is not valid.
    """
    try:
        held = json.loads(file.read_text())
        (version,) = get_args(model.model_fields["schema_version"].annotation)
        _check_version(file, held, version)
        return model.model_validate(held, extra="ignore")
    except json.JSONDecodeError as error:
        raise UsageError(f"{file} is not JSON ({error}): leave it out.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{file} can't be read: {where}: {first['msg']}. Leave it out.") from error


def _check_version(path: Path, held: Mapping[str, Any], wanted: int) -> None:
    """Check the schema version of a file.

    Raises:
        UsageError: the version differs.
    """
    version = held.get("schema_version")
    if version != wanted:
        raise UsageError(
            f"{path} has schema version {version}; this Racetrack reads {wanted}."
            " Use the Racetrack that wrote it."
        )
