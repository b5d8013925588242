"""Creates the result files in `results/`: collects the runs, searches and comparisons of an engine
from run folders, and computes its figures."""

import hashlib
import shlex
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from racetrack.analysis import curves, lag
from racetrack.analysis.comparison import CAPACITY, Figures, Side, mean_of, pss_with_tmpfs_gib
from racetrack.analysis.intervals import Summary, fit_cost, means, summary
from racetrack.config import heaps_of_engine
from racetrack.errors import UsageError
from racetrack.report.collect import (
    DERIVED,
    Collection,
    Limit,
    Run,
    changed_settings,
    collect,
    place_of,
    settings_of,
)
from racetrack.report.figures import (
    BY_KEY,
    absent_views,
    caveats_of,
    count_views,
    format_significant,
    runtime_label,
)
from racetrack.results.base import Scalar
from racetrack.results.figures import BOUND_BY_OTHERS, NOT_SUSTAINED, LagAtMost
from racetrack.results.folder import read_run, run_beside
from racetrack.results.json_file import write_whole
from racetrack.results.published import (
    MOST_BYTES,
    CapacityEstimate,
    CpuLine,
    EngineResult,
    Estimate,
    NoiseRange,
    RateFigures,
    RawData,
    Sustained,
    ViewCheck,
)
from racetrack.results.repeats import QUICK, ComparisonRecord, Piece
from racetrack.results.run import RunArguments, RunRecord, Window
from racetrack.results.search import SustainableRate
from racetrack.results.verification import ViewStatus
from racetrack.workloads.contract import workload_of

RAW_PATTERNS = (
    "run.json",
    "limit.json",
    "comparison.json",
    "*.csv",
    "*_sample_dt.log",
    "top_samples.log",
)
DIGITS = 5  # significant digits
FIGURES = (*(key for key in RateFigures.model_fields if key in BY_KEY), "memory_max_gib")
FIRST_OF_REASON = 200
Key = tuple[str, str, str]  # runtime (with workload and location of data), machine, engine


@dataclass(frozen=True)
class EngineName:
    """Title of an engine, and the key of its version in `versions` of `run.json`."""

    title: str
    version_part: str


@dataclass(frozen=True)
class Sample:
    """Figures of one window at one rate, with the keys of `figures.FIGURES`."""

    rate: int
    verdict: str
    figures: Mapping[str, float | None]
    distribution: tuple[LagAtMost, ...] = ()


@dataclass(frozen=True)
class FoundCapacity:
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
    searches and of `comparisons`. `windows` are the measured windows. `verified` are all runs that
    verified views, including runs with wrong views, which are used for nothing else. `left_out` are
    texts on measurements that are not used, with the reasons."""

    samples: list[Sample] = field(default_factory=list)
    capacities: list[FoundCapacity] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    searches: list[Limit] = field(default_factory=list)
    comparisons: dict[Path, ComparisonRecord] = field(default_factory=dict)
    records: dict[Path, RunRecord] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    verified: list[RunRecord] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def first(self) -> RunRecord:
        """Record of the first run."""
        return next(iter(self.records.values()))

    @property
    def folders(self) -> set[Path]:
        """Folders with the raw files of all that is used."""
        return {*self.records, *self.comparisons, *(search.path for search in self.searches)}

    def leave_out(self, what: str, why: str) -> None:
        """Record that the measurement `what` is not used, with the first line of the reason."""
        self.left_out.append(f"{what}: {why}".splitlines()[0][:FIRST_OF_REASON])


def publish(
    folders: Sequence[Path],
    root: Path,
    engines: Mapping[str, EngineName],
    variant: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write a result file below `root` for each engine, runtime and machine in the folders. Return
    the paths of the files. `say` is called with each folder that can't be read.

    Raises:
        UsageError: there is nothing to publish, raw data is missing, or runs of the same engine
            differ in settings or versions.
    """
    collection = collect(folders)
    for reason in collection.left_out:
        say(f"left out: {reason}")
    made = [result_of(each, engines, variant) for each in gather(collection)]
    if not made:
        raise UsageError(
            "There is nothing to publish: no run ended ok with a rate above 0, and no search found"
            " a capacity."
        )
    written = []
    for result in made:
        text, path = result.as_text(), root / result.file_name
        if len(text.encode()) > MOST_BYTES:
            raise UsageError(
                f"{path} would have {len(text.encode()):,} bytes, more than {MOST_BYTES:,}: publish"
                " fewer rates."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
        written.append(path)
    return written


def result_of(
    material: Material, engines: Mapping[str, EngineName], variant: str = ""
) -> EngineResult:
    """Return the result of an engine.

    Raises:
        UsageError: the runs differ in settings or versions, or the engine's version is unknown.
    """
    first = material.first
    settings = _common_settings(material)
    name = engines.get(first.engine, EngineName(first.engine, ""))
    days = [_day(at) for of in material.windows for at in (of.start_ms, of.end_ms)]
    return EngineResult(
        workload=workload_of(first.settings),
        engine=first.engine,
        title=name.title,
        version=_version(material, name),
        variant=variant,
        runtime=runtime_label(first.runtime, first.settings, first.data_in_memory),
        machine=first.machine,
        measured_from=min(days),
        measured_until=max(days),
        commands=_commands(settings, material),
        versions=first.versions,
        settings=settings,
        heap_rule=_heap_rule(material),
        guarantee=first.guarantee,
        caveats=_caveats(material),
        capacity=_capacity(material.capacities),
        sustained=_sustained(material.capacities),
        rates=_rates(material.samples),
        cpu_line=_cpu_line(material.samples),
        views=_views(material),
        noise=_noise(material),
        left_out=tuple(material.left_out),
        raw=raw_data(sorted(material.folders, key=lambda path: path.name)),
    )


def _common_settings(material: Material) -> dict[str, Scalar]:
    """Return the settings that differ from the defaults. They must be equal in all runs and
    searches.

    Raises:
        UsageError: the settings are not equal.
    """
    records = list(material.records.values())
    all_of = [_chosen(settings_of(record)) for record in records]
    differing = {
        name: sorted(values)
        for name in all_of[0]
        if len(values := {str(of.get(name, "")) or "not set" for of in all_of}) > 1
    }
    if differing:
        shown = "; ".join(f"{name.upper()} is {' and '.join(of)}" for name, of in differing.items())
        raise UsageError(
            f"Runs of {records[0].engine} differ in settings: {shown}. Name the folders of one"
            " configuration; --variant names it."
        )
    return _chosen(changed_settings(records[0]))


def _chosen(settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the settings without derived ones."""
    return {name: value for name, value in settings.items() if name not in DERIVED}


def _heap_rule(material: Material) -> str | None:
    """Return how comparisons sized the engine's heap, or that it has none; None if there are no
    comparisons, or if they did not record the rule."""
    engine, used = material.first.engine, material.first.settings
    heaps = [name.upper() for name in heaps_of_engine(engine)]
    if material.comparisons and not heaps:
        return "It has no heap."
    rules = []
    for record in material.comparisons.values():
        own = record.settings.get(engine, {})
        given = [name for name in heaps if name not in own]
        sized = ", ".join(f"{name}={own[name]}" for name in heaps if name in own)
        values = ", ".join(f"{name}={used.get(name.lower())}" for name in given)
        if record.heap_rule:
            rules += [f"{record.heap_rule.partition(':')[0]} ({sized})."] if sized else []
            rules += [f"The user set {values}."] if values else []
    return " ".join(dict.fromkeys(rules)) or None


def _version(material: Material, name: EngineName) -> str:
    """Return the engine's version.

    Raises:
        UsageError: the version is unknown, or versions of components differ between the runs.
    """
    records = material.records.values()
    for part in dict.fromkeys(part for record in records for part in record.versions):
        found = {record.versions.get(part, "not recorded") for record in records}
        if len(found) > 1:
            raise UsageError(
                f"Runs of {material.first.engine} differ in versions: {part} is"
                f" {' and '.join(sorted(found))}. Name the folders of one version."
            )
    version = material.first.versions.get(name.version_part, "")
    if not version:
        raise UsageError(
            f"The version of {material.first.engine} is unknown: its runs have no version of"
            f" {name.version_part or 'it'}."
        )
    return version


def _caveats(material: Material) -> tuple[str, ...]:
    found = [text for of in material.records.values() for text in caveats_of(of)]
    found += [QUICK for comparison in material.comparisons.values() if comparison.is_quick]
    return tuple(dict.fromkeys(found))


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()


def _estimate(of: Summary) -> Estimate:
    """Return a mean and its interval, rounded to DIGITS significant digits and clipped at 0."""
    return Estimate(
        mean=_round(of.mean),
        low=None if of.low is None else _round(max(0.0, of.low)),
        high=None if of.high is None else _round(of.high),
        n=of.n,
        freedom=of.freedom,
    )


def _round(value: float) -> float:
    return float(format_significant(value, DIGITS).replace(",", ""))


def _capacity(found: Sequence[FoundCapacity]) -> CapacityEstimate | None:
    if not found:
        return None
    of = _geometric_mean([one.per_s for one in found])
    if len(found) == 1:
        of = Summary(of.mean, found[0].low, found[0].high, 1)
    is_lower_bound = any(one.is_lower_bound for one in found)
    return CapacityEstimate(**dict(_estimate(of)), is_lower_bound=is_lower_bound)


def _geometric_mean(per_s: Sequence[float]) -> Summary:
    side = Side("", {(CAPACITY.key, None): summary(per_s)})
    return mean_of(side, CAPACITY.key, None, [side])


def _sustained(capacities: Sequence[FoundCapacity]) -> tuple[Sustained, ...]:
    found = []
    rates = [one for each in capacities for one in each.sustainable]
    bounds = sorted({one.bound_ms for one in rates})
    for bound_ms in bounds:
        matching = [one for one in rates if one.bound_ms == bound_ms]
        sustained_rates = [
            one.sustained_per_s for one in matching if one.sustained_per_s is not None
        ]
        failed = [one.failed_per_s for one in matching if one.failed_per_s is not None]
        found.append(
            Sustained(
                bound_ms=bound_ms,
                sustained_per_s=_estimate(_geometric_mean(sustained_rates))
                if sustained_rates
                else None,
                failed_per_s=min(failed, default=None),
            )
        )
    return tuple(found)


def _rates(samples: Sequence[Sample]) -> tuple[RateFigures, ...]:
    """Return the figures at each rate, with intervals as in comparisons."""
    by_rate = {
        rate: [one for one in samples if one.rate == rate]
        for rate in sorted({one.rate for one in samples})
    }
    figures: Figures = {
        (key, rate): of for rate, at in by_rate.items() for key, of in _means(at).items()
    }
    verdicts = {rate: {one.verdict for one in at} for rate, at in by_rate.items()}
    behind = frozenset(rate for rate, of in verdicts.items() if of & {*NOT_SUSTAINED})
    side = Side("", figures, behind)
    return tuple(
        RateFigures(
            per_s=rate,
            verdicts=dict(Counter(sample.verdict for sample in at)),
            lag_distribution=_distribution(at),
            **{
                key: _estimate(mean_of(side, key, rate, [side]))
                for key, of_rate in figures
                if of_rate == rate
            },
        )
        for rate, at in by_rate.items()
    )


def _means(samples: Sequence[Sample]) -> Mapping[str, Summary]:
    repeats = [{**of.figures, "memory_max_gib": pss_with_tmpfs_gib(of.figures)} for of in samples]
    return means(repeats, FIGURES)


def _distribution(samples: Sequence[Sample]) -> tuple[LagAtMost, ...]:
    """Return the distribution of the lag, averaged over the runs at each share of the time."""
    points = [{at.share: at.lag_ms for at in sample.distribution} for sample in samples]
    shares = [share for share in points[0] if all(share in of for of in points)]
    return tuple(
        LagAtMost(share=share, lag_ms=round(statistics.fmean(of[share] for of in points), 1))
        for share in shares
    )


def _cpu_line(samples: Sequence[Sample]) -> CpuLine | None:
    """Return the same linear cost function as in the report's tables, fitted to all samples."""
    line = fit_cost(
        (of.figures.get("processed_pageviews_per_s"), of.figures.get("cpu_mean_pct"))
        for of in samples
        if of.verdict not in NOT_SUSTAINED
    )
    if line is None:
        return None
    return CpuLine(
        base_pct=_of_line(line.base_pct, line.base_half_pct, line.runs),
        s_per_million=_of_line(line.per_million_s, line.per_million_half_s, line.runs),
    )


def _of_line(mean: float, half: float, runs: int) -> Estimate:
    return _estimate(Summary(mean, mean - half, mean + half, runs))


def _views(material: Material) -> ViewCheck:
    records = [*material.records.values(), *material.verified]
    checked = [record.verified for record in material.verified if record.verified]
    wrong = {name for of in checked for name in of.named(ViewStatus.WRONG, ViewStatus.UNREADABLE)}
    right = [name for of in checked for name in of.named(ViewStatus.RIGHT) if name not in wrong]
    counts = [count for record in records if (count := count_views(record))]
    return ViewCheck(
        runs=len(checked),
        of_workload=max((of for _, of in counts), default=None),
        right=tuple(dict.fromkeys(right)),
        wrong=tuple(sorted(wrong)),
        absent=tuple(dict.fromkeys(name for of in records for name in absent_views(of))),
    )


def _noise(material: Material) -> NoiseRange:
    def known(key: str) -> list[float]:
        values = [sample.figures.get(key) for sample in material.samples]
        return [value for value in values if value is not None]

    speeds = known("core_mib_per_s")
    speeds += [speed for of in material.capacities for speed in of.core_mib_per_s]
    return NoiseRange(
        foreign_cpu_max_pct=max(known("foreign_cpu_pct"), default=None),
        steal_max_pct=max(known("steal_pct"), default=None),
        core_min_mib_per_s=min(speeds, default=None),
        core_max_mib_per_s=max(speeds, default=None),
    )


def raw_data(folders: Sequence[Path]) -> RawData:
    """Return the raw files of these folders, with the hash of the output of `sha256sum` on them."""
    files = sorted(
        (f"{folder.name}/{path.name}", path)
        for folder in folders
        for pattern in RAW_PATTERNS
        for path in folder.glob(pattern)
    )
    lines = "".join(f"{_sha256(path)}  {name}\n" for name, path in files)
    return RawData(
        folders=tuple(folder.name for folder in folders),
        files=len(files),
        sha256=hashlib.sha256(lines.encode()).hexdigest(),
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def gather(collection: Collection) -> list[Material]:
    """Return the usable measurements, for each runtime, machine and engine.

    Raises:
        UsageError: the runs of a search or comparison are missing.
    """
    found: dict[Key, Material] = {}
    tags = {run.tag for each in collection.limits for run in each.record.runs}
    tags |= {piece.tag for each in collection.comparisons for piece in each.record.pieces}
    for compared in collection.comparisons:
        _take_comparison(found, compared.path, compared.record)
    for run in collection.runs:
        if run.tag not in tags:
            _take_run(found.setdefault((*run.place, run.engine), Material()), run)
    for limit in collection.limits:
        key = (*place_of(limit.record), limit.record.engine)
        _take_search(found.setdefault(key, Material()), limit)
    return [of for of in found.values() if of.samples or of.capacities]


def _take_run(material: Material, run: Run) -> None:
    if run.record.verified:
        material.verified.append(run.record)
    compared = "its engine's figures are those of a comparison" if material.comparisons else ""
    if why := _why_left_out(run) or compared:
        material.leave_out(run.tag, why)
        return
    measured = run.record.results.verdict.measured if run.record.results else None
    distribution = measured.lag_distribution if measured else ()
    material.samples.append(Sample(run.rate, run.verdict, run.figures, distribution))
    material.runs.append(run)
    material.windows += [run.record.measured.window] if run.record.measured else []
    material.records[run.path] = run.record


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
    if not record.capacity or void:
        material.leave_out(limit.tag, void or record.outcome)
        return
    capacity = record.capacity
    material.capacities.append(
        FoundCapacity(
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
    material.records |= dict(_beside(limit.path, run.tag) for run in record.runs)


def _beside(folder: Path, tag: str) -> tuple[Path, RunRecord]:
    """Return the folder and the record of a run. The folder is next to `folder`, the folder of the
    run's search or comparison.

    Raises:
        UsageError: the folder of the run is missing.
    """
    if not (path := run_beside(folder, tag)):
        raise UsageError(
            f"{folder} has no raw data: {folder.parent / tag} is gone. Copy the folder together"
            " with its runs."
        )
    return path, read_run(path)


def _take_comparison(found: dict[Key, Material], folder: Path, record: ComparisonRecord) -> None:
    """Add the pieces of a comparison to the material of their engines."""
    for piece in record.pieces:
        path, run = _beside(folder, piece.tag)
        material = found.setdefault((*place_of(run), piece.engine), Material())
        if piece.outcome != "ok" or piece.verdict in BOUND_BY_OTHERS:
            why = piece.outcome if piece.outcome != "ok" else piece.verdict
            material.leave_out(f"{piece.tag} at {piece.load}", why)
            continue
        _take_piece(material, path, piece)
        material.records[path] = run
        material.comparisons[folder] = record


def _take_piece(material: Material, path: Path, piece: Piece) -> None:
    material.windows += [piece.window] if piece.window else []
    if piece.pageviews_per_s is not None:
        sample = Sample(piece.pageviews_per_s, piece.verdict, piece.figures, _lag_in(path, piece))
        material.samples.append(sample)
    elif capacity := piece.figures.get("capacity_per_s"):
        material.capacities.append(FoundCapacity(capacity, None, None, piece.is_lower_bound))


def _lag_in(path: Path, piece: Piece) -> tuple[LagAtMost, ...]:
    """Compute the distribution of the lag in the window of a piece from its raw data."""
    if not piece.window:
        return ()
    window = piece.window
    return lag.distribution(lag.age(curves.read(path), window.start_ms, window.end_ms))


def _commands(settings: Mapping[str, Scalar], material: Material) -> tuple[str, ...]:
    """Return the commands that repeat the measurements with these settings, which differ from the
    defaults. Runs that differ only in their rates are repeated by one sweep."""
    engine = material.first.engine
    alike: dict[str, list[Run]] = {}
    for run in material.runs:
        if run.record.arguments:
            alike.setdefault(_options(run.record.arguments), []).append(run)
    sweeps = [_sweep(engine, options, of) for options, of in alike.items()]
    prefix = _prefix(settings)
    return (
        *(prefix + one for one in (*sweeps, *_search(engine, material.searches))),
        *(_comparison(engine, settings, record) for record in material.comparisons.values()),
    )


def _prefix(settings: Mapping[str, Scalar]) -> str:
    return "".join(
        f"{name.upper()}={shlex.quote(_text(value))} " for name, value in settings.items()
    )


def _comparison(engine: str, settings: Mapping[str, Scalar], record: ComparisonRecord) -> str:
    """Return the command of a comparison, which sets heaps, reads and tracer events itself."""
    own = record.settings.get(engine, {})
    given = {name: value for name, value in settings.items() if name.upper() not in own}
    words = [
        f"./race compare {' '.join(record.engines)}",
        *(["--quick"] if record.is_quick else []),
        f"--rates {','.join(map(str, record.rates))} --repeats {record.repeats}",
        *([] if record.reads_per_s else ["--no-reads"]),
        *([f"--workload {record.workload}"] if "workload" in settings else []),
    ]
    return _prefix(given) + " ".join(words)


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(arguments: RunArguments) -> str:
    verify = " --verify" if arguments.verify else ""
    return (
        f"--settle {arguments.wait_s:g}s --samples {arguments.samples}"
        f" --decide-within {arguments.decide_within_s:g}s{verify}"
    )


def _sweep(engine: str, options: str, runs: Sequence[Run]) -> str:
    counts = Counter(run.rate for run in runs)
    rates = ",".join(map(str, sorted(counts)))
    repeat = max(counts.values())
    return f"./race sweep {engine} --rates {rates} --repeat {repeat} {options}"


def _search(engine: str, searches: Sequence[Limit]) -> list[str]:
    """Return the command that repeats the searches, with the arguments of the first search."""
    if not searches:
        return []
    words = [f"./race limit {engine} --repeat {len(searches)}"]
    arguments = searches[0].record.arguments
    words.append(f"--start {arguments.start_per_s} --warm-up {arguments.warm_up_s:g}s")
    words += [f"--bound {bound_ms:g}ms" for bound_ms in arguments.bounds_ms]
    words.append(f"--within {arguments.within_s:g}s")
    return [" ".join(words)]
