"""Details of the runs of a report: their records, warnings and missing raw files."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from racetrack.analysis import curves, raw
from racetrack.analysis.table import Place, Row, Table, place_of
from racetrack.analysis.warnings import Grade, warnings_of
from racetrack.errors import UsageError
from racetrack.metrics import TOP_CPU
from racetrack.report.sheet import Note
from racetrack.results.folder import read_run, shared_file, tag_of
from racetrack.results.run import RunRecord
from racetrack.terminal import Progress, no_progress

# Raw files of every run, and the figures computed from each.
RAW_FILES = {
    "curves.csv": "lag, throughput and verdict",
    "arrivals.csv": "the achieved rate",
    "usage.csv": "CPU and memory",
    "top_samples.log": TOP_CPU.title,
}
OF_TOP = ("top_samples.log",)  # only runs with one steady window have samples of top


@dataclass(frozen=True)
class RunFolder:
    """A run folder and its record."""

    path: Path
    record: RunRecord

    @property
    def tag(self) -> str:
        """Name of the folder."""
        return tag_of(self.path)

    @property
    def engine(self) -> str:
        """Engine name on the command line."""
        return self.record.engine


def readable(table: Table, progress: Progress = no_progress) -> Table:
    """Return a table without the rows of runs of which a raw file is damaged, so that no chart
    fails later. These are left out with file and line."""
    left_out: dict[Path, str] = {}
    folders = dict.fromkeys([*table.folders, *(row.folder for row in table.rows if row.folder)])
    for done, folder in enumerate(folders):
        progress(done, len(folders))
        try:
            _require_readable(folder, read_run(folder))
        except UsageError as error:
            left_out[folder] = str(error)
    if left_out and len(left_out) == len(folders):
        raise UsageError("\n".join(left_out.values()))
    return replace(
        table,
        rows=tuple(row for row in table.rows if row.folder not in left_out),
        folders=tuple(folder for folder in table.folders if folder not in left_out),
        left_out=(*table.left_out, *left_out.values()),
    )


def _require_readable(folder: Path, run: RunRecord) -> None:
    """Check the raw files of which a report draws charts.

    Raises:
        UnreadableFile: one is damaged.
    """
    with suppress(curves.CurvesError):  # it recorded none, which its charts say
        curves.read(folder)
    if shared_file(folder, "usage.csv").is_file():
        raw.usage(folder)
    if (folder / f"{run.engine}_sample_dt.log").is_file():
        raw.delays(folder, run.engine)
    raw.actions(folder)


def read_runs(table: Table) -> list[RunFolder]:
    """Read the records of the runs of a table."""
    return [RunFolder(path, read_run(path)) for path in table.folders]


def why_no_figures(record: RunRecord) -> str:
    """Return why a run has no figures that count; empty if it has."""
    if record.live:
        return "It is a live session: its load changed, so it has no figures to compare."
    return "" if record.outcome == "ok" else record.outcome


def warnings_by_grade(run: RunFolder) -> dict[Grade, list[str]]:
    """Return the warnings of a run by how much they matter, missing raw files included."""
    graded = warnings_of(run.record)
    graded[Grade.WRONG] += missing_files(run)
    return graded


def missing_files(run: RunFolder) -> list[str]:
    """Return a warning that names the missing raw files of a measured run."""
    folder, record = run.path, run.record
    if not (record.measured or record.windows):
        return []
    delay = f"{record.engine}_sample_dt.log"
    no_top = record.live or not (record.results and record.results.top)
    shared = {
        name: content for name, content in RAW_FILES.items() if not (no_top and name in OF_TOP)
    }
    needed = {**shared, delay: "the delay dt_ms"}
    paths = {**{name: shared_file(folder, name) for name in shared}, delay: folder / delay}
    absent = [
        f"{name} ({content})" for name, content in needed.items() if not paths[name].is_file()
    ]
    warning = (
        f"Raw files are missing: {', '.join(absent)}. Charts of them are left out, and figures that"
        " were computed from them can't be checked."
    )
    return [warning] if absent else []


def notes_of(runs: Sequence[RunFolder], rows: Iterable[Row]) -> Mapping[Place, list[Note]]:
    """Return the warnings about the runs of each place whose figures count, each once, with the
    names of its runs. The names are left out if the warning is about all runs."""
    counted = {row.folder for row in rows if row.outcome == "ok"}
    places: dict[Place, list[RunFolder]] = {}
    for run in runs:
        if run.path in counted:
            places.setdefault(place_of(run.record), []).append(run)
    return {place: list(_notes(runs)) for place, runs in places.items()}


def _notes(runs: Sequence[RunFolder]) -> Iterable[Note]:
    about: dict[tuple[Grade, str], list[str]] = {}
    for run in runs:
        for grade, warnings in warnings_by_grade(run).items():
            for warning in warnings:
                about.setdefault((grade, warning), []).append(run.tag)
    for grade in Grade:
        for (its_grade, warning), tags in about.items():
            if its_grade is grade:
                yield Note(warning, str(grade), "" if len(tags) == len(runs) else _names(tags))


def _names(tags: Sequence[str]) -> str:
    return tags[0] if len(tags) == 1 else f"{len(tags)} runs, e.g. {tags[0]}"
