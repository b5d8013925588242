"""Creates, writes and reads the run folder `logs/<tag>/`."""

import json
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from racetrack import renamed
from racetrack.clock import utc_now
from racetrack.errors import UnreadableFile, UsageError
from racetrack.plugins import JOIN
from racetrack.results.json_file import write_json, write_whole
from racetrack.results.run import SCHEMA_VERSION, EngineResult, RunRecord, Step

Record = TypeVar("Record", bound=BaseModel)
RUN_JSON, STACK = "run.json", "stack"


# Keys of `run.json` that are the same for all engines of a run.
SHARED = (
    "part_of",
    "runtime",
    "broker",
    "data_in_memory",
    "arguments",
    "settings",
    "machine",
    "versions",
    "steps",
    "faults",
    "load",
    "live",
    "event_window_ms",
    "traced_views",
    "queries",
)
UNFINISHED = "unfinished"


class RunFolder:
    """The folder of a run. `run.json` is rewritten at every change, so it is up to date even if the
    run is killed.

    If several engines read one input, each has a subfolder with its own `run.json` and raw files;
    the raw files that all engines share are in the run's folder (`shared_file`)."""

    def __init__(self, path: Path, engine: str, beside: Sequence[str] = ()) -> None:
        self.path = path
        self._parts: dict[str, RunFolder] = {}
        self._run = RunRecord(
            schema_version=SCHEMA_VERSION,
            run_id=str(uuid.uuid4()),
            tag=tag_of(path),
            engine=engine,
        )
        if beside:
            self._run.beside = tuple(beside)
        self._write()

    @classmethod
    def create(cls, logs: Path, engine: str, label: str) -> "RunFolder":
        """Create the folder of a new run, named by the current time. The names of several engines
        on one input are joined by `+`."""
        path = named_folder(logs, f"{engine}_{label}")
        (path / STACK).mkdir()
        folder = cls(path, engine)
        names = engine.split(JOIN)
        for name in names if len(names) > 1 else ():
            (path / name / STACK).mkdir(parents=True)
            folder._parts[name] = cls(
                path / name, name, [other for other in names if other != name]
            )
        with folder.recording():
            pass  # now it names its engines
        return folder

    def of(self, engine: str) -> "RunFolder":
        """Return the folder of an engine of this run: a subfolder, or this folder if the run has
        only one engine."""
        return self._parts.get(engine, self)

    @property
    def tag(self) -> str:
        """Name of the folder, which identifies the run."""
        return tag_of(self.path)

    @property
    def stack(self) -> Path:
        """Folder of the services' logs."""
        return self.path / STACK

    @contextmanager
    def recording(self) -> Iterator[RunRecord]:
        """Yield the record, to be changed. At the end of the context, write `run.json` unless an
        error occurred. Values that all engines of the run have in common are also copied into each
        engine's record."""
        yield self._run
        self._share()
        if self._parts:
            self._run.engines = tuple(part._result() for part in self._parts.values())
        self._write()

    @contextmanager
    def recording_of(self, engine: str) -> Iterator[RunRecord]:
        """Yield the record of an engine of this run for changes, like `recording`."""
        with self.of(engine).recording() as run:
            yield run
        if engine in self._parts:
            with self.recording():
                pass  # the results of the engines have changed

    def _result(self) -> EngineResult:
        run = self._run
        return EngineResult(engine=run.engine, outcome=run.outcome, results=run.results)

    def _share(self) -> None:
        """Copy the shared keys into the engines' records. An engine without an outcome of its own
        has the outcome of the run."""
        given = self._run.model_fields_set.intersection(SHARED)
        for part in self._parts.values():
            for key in given:
                setattr(part._run, key, getattr(self._run, key))
            if part._run.outcome == UNFINISHED:
                part._run.outcome = self._run.outcome
            part._write()

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
        write_whole(self.path / RUN_JSON, self._run.model_dump_json(indent=2, exclude_unset=True))


def tag_of(path: Path) -> str:
    """Return the name of a run's folder; that of an engine of several is `<run>/<engine>`."""
    return f"{path.parent.name}/{path.name}" if is_part(path) else path.name


def is_part(folder: Path) -> bool:
    """Return whether a folder is that of one engine inside a run of several."""
    return (folder.parent / RUN_JSON).is_file()


def shared_file(folder: Path, name: str) -> Path:
    """Return the path of a raw file that all engines of a run share, given the run folder of an
    engine."""
    return (folder.parent if is_part(folder) else folder) / name


def engine_folders(folder: Path) -> list[Path]:
    """Return the run folder of each engine of a run: subfolders if the run has several engines,
    otherwise the run's own folder."""
    return [folder / result.engine for result in read_run(folder).engines] or [folder]


def run_beside(folder: Path, tag: str) -> Path | None:
    """Return the run folder with this tag that is next to `folder`, the folder of a plan or search;
    None if it is missing. Tags come from files, so they are reduced to plain names."""
    path = folder.parent / Path(tag).name
    return path if (path / RUN_JSON).is_file() else None


def named_folder(logs: Path, label: str) -> Path:
    """Create a folder such as `logs/2026.11.20.18.04.43_UTC_<label>/`. If it exists, use the time
    one second later."""
    logs.mkdir(parents=True, exist_ok=True)
    at = datetime.now(UTC)
    while True:
        folder = logs / f"{at:%Y.%m.%d.%H.%M.%S}_UTC_{label}"
        try:
            folder.mkdir()
        except FileExistsError:
            at += timedelta(seconds=1)
        else:
            return folder


def shown(path: Path) -> str:
    """Return a path as text, relative to the current folder if it is inside that folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def read_run(path: Path) -> RunRecord:
    """Read `run.json` of a run folder.

    Raises:
        UsageError: the file is damaged, or has another version.
    """
    return read_record(path / RUN_JSON, RunRecord)


def read_record(file: Path, model: type[Record]) -> Record:
    """Read a JSON file into a model of the same schema version, or of the one before. Unknown keys
    are ignored.

    Raises:
        UnreadableFile: the file is damaged.
        UsageError: the file has another version.
    """
    content = json_object(file)
    (version,) = get_args(model.model_fields["schema_version"].annotation)
    try:
        if content.get("schema_version") == version - 1:
            content = {**renamed.in_record(content), "schema_version": version}
        _check_version(file, content, version)
        return model.model_validate(content, extra="ignore")
    except (ValidationError, ArithmeticError, RecursionError) as error:
        if not isinstance(error, ValidationError):
            raise UnreadableFile(file, error) from error
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnreadableFile(file, f"{where}: {first['msg']}") from error


def json_object(file: Path) -> dict[str, Any]:
    """Read a JSON file that contains an object.

    Raises:
        UnreadableFile: it does not, or can't be read.
    """
    try:
        content = json.loads(text_of(file), parse_float=finite_number, parse_constant=finite_number)
    except json.JSONDecodeError as error:
        raise UnreadableFile(file, f"it is not JSON ({error.msg})", error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(file, f"it is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise UnreadableFile(file, "it contains no JSON object")
    return content


def text_of(file: Path) -> str:
    """Read a text file.

    Raises:
        UnreadableFile: it is not UTF-8, or can't be read.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UnreadableFile(file, error.strerror) from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableFile(file, "it is not text in UTF-8", line) from error


def finite_number(text: str) -> float:
    """Parse a number.

    Raises:
        ValueError: it is not a number, or not finite.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def write_record(file: Path, record: BaseModel) -> None:
    """Write a record as JSON, atomically."""
    write_json(file, record.model_dump(mode="json"))


def _check_version(path: Path, content: Mapping[str, Any], wanted: int) -> None:
    """Check the schema version of a file.

    Raises:
        UnreadableFile: the file has none, so Racetrack did not write it.
        UsageError: the version differs.
    """
    version = content.get("schema_version")
    if version is None:
        raise UnreadableFile(path, "Racetrack did not write it, it has no schema version")
    if version != wanted:
        raise UsageError(
            f"{path} has schema version {version}; this Racetrack reads {wanted}."
            " Use the Racetrack that wrote it."
        )
