"""Collects the runs, searches and comparisons from which the result file of an engine is made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from racetrack.errors import UsageError
from racetrack.report.collect import Limit, Run, collect, place_of
from racetrack.results import comparison
from racetrack.results.comparison import ComparisonRecord
from racetrack.results.figures import LagAtMost, VerdictKind
from racetrack.results.folder import read_record, read_run
from racetrack.results.repeats import Piece
from racetrack.results.run import RunRecord, Window
from racetrack.results.search import PAGEVIEWS, SustainableRate

FIRST_OF_REASON = 200
# Verdicts with which figures do not describe the engine.
BOUND_BY_OTHERS = (str(VerdictKind.GENERATOR_BOUND), str(VerdictKind.BROKER_BOUND))
Key = tuple[str, str, str]  # runtime (with workload and location of data), machine, engine


@dataclass(frozen=True)
class Sample:
    """Figures of one window at one rate, with the keys of `figures.FIGURES`."""

    rate: int
    verdict: str
    figures: Mapping[str, float | None]
    distribution: tuple[LagAtMost, ...] = ()


@dataclass(frozen=True)
class Throughput:
    """A capacity in events per second. `low` and `high` are None if the measurement has no
    interval. `core_mib_per_s` contains the core speed in each window at saturation."""

    per_s: float
    low: float | None
    high: float | None
    is_lower_bound: bool
    sustainable: tuple[SustainableRate, ...] = ()
    core_mib_per_s: tuple[float, ...] = ()


@dataclass
class Material:
    """All measurements of one engine with the same runtime and machine.

    `records` contains the records of all runs that are used, by folder, including the runs of
    searches and comparisons. `windows` are the measured windows. `verified` are all runs that
    verified views, including runs with wrong views, which are used for nothing else. `left_out` are
    texts on measurements that are not used, with the reasons."""

    samples: list[Sample] = field(default_factory=list)
    throughputs: list[Throughput] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    searches: list[Limit] = field(default_factory=list)
    comparisons: list[ComparisonRecord] = field(default_factory=list)
    records: dict[Path, RunRecord] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    folders: set[Path] = field(default_factory=set)
    verified: list[RunRecord] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def first(self) -> RunRecord:
        """Record of the first run."""
        return next(iter(self.records.values()))

    def leave_out(self, what: str, why: str) -> None:
        """Record that the measurement `what` is not used, with the first line of the reason."""
        self.left_out.append(f"{what}: {why}".splitlines()[0][:FIRST_OF_REASON])


def gather(folders: Sequence[Path]) -> list[Material]:
    """Return the usable measurements in these folders, for each runtime, machine and engine.

    Raises:
        UsageError: a folder has no results, was written by another version, or lacks the runs of a
            search or comparison.
    """
    collection = collect(folders)
    found: dict[Key, Material] = {}
    compared = list(_comparisons(folders))
    tags = {run.tag for each in collection.limits for run in each.record.runs}
    tags |= {piece.tag for _, record in compared for piece in record.pieces}
    for run in collection.runs:
        if run.tag not in tags:
            _take_run(found.setdefault((*run.place, run.engine), Material()), run)
    for limit in collection.limits:
        key = (*place_of(limit.record), limit.record.engine)
        _take_search(found.setdefault(key, Material()), limit)
    for folder, record in compared:
        _take_comparison(found, folder, record)
    return [_whole(of) for of in found.values() if of.samples or of.throughputs]


def _take_run(material: Material, run: Run) -> None:
    if run.record.verified:
        material.verified.append(run.record)
    if why := _why_left_out(run):
        material.leave_out(run.tag, why)
        return
    lag = run.record.results.verdict.measured if run.record.results else None
    distribution = lag.lag_distribution if lag else ()
    material.samples.append(Sample(run.rate, run.verdict, run.figures, distribution))
    material.runs.append(run)
    material.windows += [run.record.measured.window] if run.record.measured else []
    _take_record(material, run.path, run.record)


def _take_record(material: Material, path: Path, record: RunRecord) -> None:
    material.records[path] = record
    material.folders.add(path)


def _why_left_out(run: Run) -> str:
    """Return the first reason why a run is not used; empty if it is used."""
    arguments = run.record.arguments
    reasons = (
        "" if run.counts else run.why_not,
        f"beside {', '.join(run.record.beside)}" if run.record.beside else "",
        "" if run.rate else "no load",
        f"with the fault {', '.join(arguments.faults)}" if arguments and arguments.faults else "",
        f"with the load profile {arguments.load}" if arguments and arguments.load else "",
        run.verdict if run.verdict in BOUND_BY_OTHERS else "",
    )
    return next(filter(None, reasons), "")


def _take_search(material: Material, limit: Limit) -> None:
    record = limit.record
    seen = record.last_saturation()
    void = next((of.void for of in seen if of.void), "")
    if record.of != PAGEVIEWS or not record.capacity or void:
        why = f"a search for {record.of}" if record.of != PAGEVIEWS else void or record.outcome
        material.leave_out(limit.tag, why)
        return
    capacity = record.capacity
    material.throughputs.append(
        Throughput(
            per_s=capacity.per_s,
            low=capacity.low,
            high=capacity.high,
            is_lower_bound=not record.is_capacity_of_all_runs,
            sustainable=record.sustainable,
            core_mib_per_s=tuple(of.core.mib_per_s for of in seen if of.core),
        )
    )
    material.searches.append(limit)
    material.windows += [of.window for of in seen]
    material.folders.add(limit.path)
    for run in record.runs:
        _take_record(material, *_beside(limit.path, run.tag))


def _beside(folder: Path, tag: str) -> tuple[Path, RunRecord]:
    """Return the folder and the record of a run. The folder is next to `folder`, the folder of the
    run's search or comparison.

    Raises:
        UsageError: the folder of the run is missing.
    """
    path = folder.parent / Path(tag).name
    if not (path / "run.json").is_file():
        raise UsageError(
            f"{folder} has no raw data: {path} is gone. Copy the folder together with its runs."
        )
    return path, read_run(path)


def _comparisons(folders: Sequence[Path]) -> Iterable[tuple[Path, ComparisonRecord]]:
    """Yield the comparisons in these folders and in their direct subfolders."""
    for folder in map(Path.resolve, folders):
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
        for path in (folder, *inside):
            if (file := path / comparison.FILE).is_file():
                yield path, read_record(file, ComparisonRecord)


def _take_comparison(found: dict[Key, Material], folder: Path, record: ComparisonRecord) -> None:
    """Add the pieces of a comparison to the material of their engines."""
    for piece in record.pieces:
        path, run = _beside(folder, piece.tag)
        material = found.setdefault((*place_of(run), piece.engine), Material())
        if piece.outcome != "ok" or piece.verdict in BOUND_BY_OTHERS:
            why = piece.outcome if piece.outcome != "ok" else piece.verdict
            material.leave_out(f"{piece.tag} at {piece.load}", why)
            continue
        _take_piece(material, piece)
        _take_record(material, path, run)
        if record not in material.comparisons:
            material.comparisons.append(record)
        material.folders.add(folder)


def _take_piece(material: Material, piece: Piece) -> None:
    material.windows += [piece.window] if piece.window else []
    if piece.pageviews_per_s is not None:
        material.samples.append(Sample(piece.pageviews_per_s, piece.verdict, piece.figures))
    elif capacity := piece.figures.get("capacity_per_s"):
        material.throughputs.append(Throughput(capacity, None, None, piece.is_lower_bound))


def _whole(material: Material) -> Material:
    """Drop capacities that are only lower bounds, unless there are no others."""
    known = [of for of in material.throughputs if not of.is_lower_bound]
    if known and len(known) < len(material.throughputs):
        dropped = len(material.throughputs) - len(known)
        material.leave_out("capacity", f"{dropped} lower bounds, since others were measured")
        material.throughputs = known
    return material
