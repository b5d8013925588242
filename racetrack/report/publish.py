"""Creation of the result files in `results/` from run folders."""

import hashlib
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from racetrack.analysis import compare
from racetrack.analysis.compare import CostLine
from racetrack.errors import UsageError
from racetrack.report import repeat
from racetrack.report.collect import (
    Limit,
    Run,
    changed_settings,
    collect,
    place_of,
    settings_of,
    tables,
)
from racetrack.report.figures import (
    absent_views,
    count_views,
    format_significant,
    runtime_of,
    view_caveats,
)
from racetrack.results.base import Scalar
from racetrack.results.figures import LagAtMost, VerdictKind
from racetrack.results.folder import read_run
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
from racetrack.results.run import RunRecord
from racetrack.results.search import PAGEVIEWS, LimitRecord
from racetrack.results.verification import ViewStatus
from racetrack.workloads.contract import workload_of

RAW_PATTERNS = ("run.json", "limit.json", "*.csv", "*_sample_dt.log", "top_samples.log")
# Verdicts that say nothing about the engine.
BOUND_BY_OTHERS = (str(VerdictKind.GENERATOR_BOUND), str(VerdictKind.BROKER_BOUND))
DIGITS = 5  # significant digits
FIRST_OF_REASON = 200
FIGURES = (
    "lag_p50_ms",
    "lag_p99_ms",
    "view_lag_p50_ms",
    "view_lag_p99_ms",
    "read_time_p50_ms",
    "read_time_p99_ms",
    "cpu_mean_pct",
    "cpu_s_per_million",
    "rss_max_gib",
)


@dataclass(frozen=True)
class EngineName:
    """Title of an engine, and the key of its version in `versions` of `run.json`."""

    title: str
    version_part: str


@dataclass(frozen=True)
class Material:
    """Runs and searches of one engine with the same runtime and machine, from which its result is
    made.

    `search_runs` are the runs of the searches. `verified` are all runs that verified views,
    including runs with wrong views, which are used for nothing else. `left_out` are texts on runs
    and searches that are not used, with the reasons."""

    runs: tuple[Run, ...]
    searches: tuple[Limit, ...]
    search_runs: tuple[tuple[Path, RunRecord], ...]
    verified: tuple[RunRecord, ...]
    left_out: tuple[str, ...]

    @property
    def described(self) -> list[RunRecord]:
        """Records of all runs, including the runs of searches."""
        return [*(run.record for run in self.runs), *(record for _, record in self.search_runs)]

    @property
    def folders(self) -> list[Path]:
        """All folders with raw data, sorted by name."""
        found = [run.path for run in self.runs] + [path for path, _ in self.search_runs]
        return sorted({*found, *(each.path for each in self.searches)}, key=lambda path: path.name)


def publish(
    folders: Sequence[Path],
    root: Path,
    engines: Mapping[str, EngineName],
    variant: str = "",
) -> list[Path]:
    """Write a result file below `root` for each engine, runtime and machine in the folders. Return
    the paths of the files.

    Raises:
        UsageError: there is nothing to publish, raw data is missing, or runs of the same engine
            differ in settings or versions.
    """
    made = [result_of(each, engines, variant) for each in gather(folders)]
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


def gather(folders: Sequence[Path]) -> list[Material]:
    """Return the usable runs and searches in these folders, for each engine, runtime and machine,
    in the order of the folders.

    Raises:
        UsageError: a folder has no results, was written by another version, or lacks the runs of a
            search.
    """
    collection = collect(folders)
    keys = dict.fromkeys(
        [
            *((*of.place, of.engine) for of in collection.runs),
            *((*place_of(of.record), of.record.engine) for of in collection.limits),
        ]
    )
    found = []
    for key in keys:
        runs = [of for of in collection.runs if (*of.place, of.engine) == key]
        limits = [of for of in collection.limits if (*place_of(of.record), of.record.engine) == key]
        material = _material(runs, limits)
        if material.runs or material.searches:
            found.append(material)
    return found


def _material(runs: Sequence[Run], limits: Sequence[Limit]) -> Material:
    of_searches = {run.tag for each in limits for run in each.record.runs}
    reasons = [(run, _why_run_is_left_out(run)) for run in runs if run.tag not in of_searches]
    found = [(each, _why_search_is_left_out(each)) for each in limits]
    whole = tuple(of for of, why in found if not why and of.record.is_capacity_of_all_runs)
    partial = tuple(of for of, why in found if not why and not of.record.is_capacity_of_all_runs)
    left_out = [f"{run.tag}: {why}" for run, why in reasons if why]
    left_out += [f"{each.tag}: {why}" for each, why in found if why]
    if whole:
        left_out += [f"{of.tag}: {of.record.outcome}" for of in partial]
    counted = whole or partial
    return Material(
        runs=tuple(run for run, why in reasons if not why),
        searches=counted,
        search_runs=tuple(of for each in counted for of in _runs_of(each)),
        verified=tuple(run.record for run in runs if run.record.verified),
        left_out=tuple(text.splitlines()[0][:FIRST_OF_REASON] for text in left_out),
    )


def _why_run_is_left_out(run: Run) -> str:
    """Return the first reason why a run is not part of a result; empty if it is."""
    asked = run.record.asked
    reasons = (
        "" if run.counts else run.why_not,
        "" if run.rate else "no load",
        f"with the fault {', '.join(asked.faults)}" if asked and asked.faults else "",
        f"with the load profile {asked.load}" if asked and asked.load else "",
        run.verdict if run.verdict in BOUND_BY_OTHERS else "",
    )
    return next(filter(None, reasons), "")


def _why_search_is_left_out(limit: Limit) -> str:
    record = limit.record
    if record.of != PAGEVIEWS:
        return f"a search for {record.of}"
    if not record.capacity:
        return record.outcome
    void = [seen.void for seen in record.last_saturation() if seen.void]
    return void[0] if void else ""


def _runs_of(limit: Limit) -> Iterable[tuple[Path, RunRecord]]:
    for run in limit.record.runs:
        path = limit.path.parent / Path(run.tag).name
        if not (path / "run.json").is_file():
            raise UsageError(
                f"{limit.path} has no raw data: {path} is gone. Copy the runs of a search together"
                " with it."
            )
        yield path, read_run(path)


def result_of(
    material: Material, engines: Mapping[str, EngineName], variant: str = ""
) -> EngineResult:
    """Return the result of an engine.

    Raises:
        UsageError: the runs differ in settings or versions, or the engine's version is unknown.
    """
    first = material.described[0]
    settings = _common_settings(material)
    name = engines.get(first.engine, EngineName(first.engine, ""))
    days = _days(material)
    return EngineResult(
        workload=workload_of(first.settings),
        engine=first.engine,
        title=name.title,
        version=_version(material, name),
        variant=variant,
        runtime=runtime_of(first) + ("" if first.data_in_memory else ", data on disk"),
        machine=first.machine,
        measured_from=min(days),
        measured_until=max(days),
        commands=repeat.commands(first.engine, settings, material.runs, material.searches),
        versions=first.versions,
        settings=settings,
        guarantee=first.guarantee,
        caveats=_caveats(material),
        capacity=_capacity(material.searches),
        sustained=_sustained(material.searches),
        rates=tuple(_at_rate(rate, runs) for rate, runs in _by_rate(material.runs)),
        cpu_line=_cpu_line(material.runs),
        views=_views(material),
        noise=_noise(material),
        left_out=material.left_out,
        raw=raw_data(material.folders),
    )


def _common_settings(material: Material) -> dict[str, Scalar]:
    """Return the settings that differ from the defaults. They must be equal in all runs and
    searches.

    Raises:
        UsageError: the settings are not equal.
    """
    records: list[RunRecord | LimitRecord] = [run.record for run in material.runs]
    records += [each.record for each in material.searches]
    all_of = [settings_of(record) for record in records]
    differing = {
        name: sorted({str(of.get(name, "not set")) for of in all_of})
        for name in all_of[0]
        if len({str(of.get(name, "not set")) for of in all_of}) > 1
    }
    if differing:
        told = "; ".join(f"{name.upper()} is {' and '.join(of)}" for name, of in differing.items())
        raise UsageError(
            f"Runs of {records[0].engine} differ in settings: {told}. Name the folders of one"
            " configuration; --variant names it."
        )
    return changed_settings(records[0])


def _version(material: Material, name: EngineName) -> str:
    """Return the engine's version.

    Raises:
        UsageError: the version is unknown, or versions of components differ between the runs.
    """
    parts = dict.fromkeys(part for record in material.described for part in record.versions)
    for part in parts:
        found = {record.versions.get(part, "not recorded") for record in material.described}
        if len(found) > 1:
            raise UsageError(
                f"Runs of {material.described[0].engine} differ in versions: {part} is"
                f" {' and '.join(sorted(found))}. Name the folders of one version."
            )
    version = material.described[0].versions.get(name.version_part, "")
    if not version:
        raise UsageError(
            f"The version of {material.described[0].engine} is unknown: its runs have no version of"
            f" {name.version_part or 'it'}."
        )
    return version


def _caveats(material: Material) -> tuple[str, ...]:
    found = [text for of in material.described for text in (*view_caveats(of), *of.caveats)]
    return tuple(dict.fromkeys(found))


def _days(material: Material) -> list[str]:
    windows = [run.record.measured.window for run in material.runs if run.record.measured]
    windows += [seen.window for each in material.searches for seen in each.record.last_saturation()]
    return [
        datetime.fromtimestamp(at / 1000, UTC).date().isoformat()
        for window in windows
        for at in (window.start_ms, window.end_ms)
    ]


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of repeats with its 95 % interval (Student's t), clipped at 0."""
    found = compare.mean(values)
    low = high = None
    if found.half is not None:
        low, high = found.mean - found.half, found.mean + found.half
    return _interval(found.mean, low, high, found.n)


def _interval(mean: float, low: float | None, high: float | None, n: int) -> Estimate:
    """Return an estimate rounded to DIGITS significant digits and clipped at 0."""
    return Estimate(
        mean=_round(mean),
        low=None if low is None else _round(max(0.0, low)),
        high=None if high is None else _round(high),
        n=n,
    )


def _round(value: float) -> float:
    return float(format_significant(value, DIGITS).replace(",", ""))


def _capacity(searches: Sequence[Limit]) -> CapacityEstimate | None:
    found = [each.record.capacity for each in searches if each.record.capacity]
    if not found:
        return None
    of = estimate([one.per_s for one in found])
    if len(found) == 1:
        of = _interval(of.mean, found[0].low, found[0].high, 1)
    is_partial = not all(each.record.is_capacity_of_all_runs for each in searches)
    return CapacityEstimate(**dict(of), is_lower_bound=is_partial)


def _sustained(searches: Sequence[Limit]) -> tuple[Sustained, ...]:
    found = []
    bounds = sorted({one.bound_ms for each in searches for one in each.record.sustainable})
    for bound_ms in bounds:
        asked = [
            one for each in searches for one in each.record.sustainable if one.bound_ms == bound_ms
        ]
        held = [one.held_per_s for one in asked if one.held_per_s is not None]
        failed = [one.failed_per_s for one in asked if one.failed_per_s is not None]
        found.append(
            Sustained(
                bound_ms=bound_ms,
                held_per_s=estimate(held) if held else None,
                failed_per_s=min(failed, default=None),
            )
        )
    return tuple(found)


def _by_rate(runs: Sequence[Run]) -> list[tuple[int, list[Run]]]:
    rates = sorted({run.rate for run in runs})
    return [(rate, [run for run in runs if run.rate == rate]) for rate in rates]


def _at_rate(rate: int, runs: Sequence[Run]) -> RateFigures:
    figures = {key: [run.figures[key] for run in runs] for key in FIGURES}
    figures["memory_max_gib"] = [_memory_gib(run) for run in runs]
    known = {
        key: estimate([value for value in values if value is not None])
        for key, values in figures.items()
        if None not in values
    }
    return RateFigures(
        per_s=rate,
        verdicts=dict(Counter(run.verdict for run in runs)),
        lag_distribution=_distribution(runs),
        **known,
    )


def _memory_gib(run: Run) -> float | None:
    pss, tmpfs = run.figures["pss_max_gib"], run.figures["tmpfs_max_gib"]
    return None if pss is None else pss + (tmpfs or 0.0)


def _distribution(runs: Sequence[Run]) -> tuple[LagAtMost, ...]:
    """Return the distribution of the lag, averaged over the runs at each share of the time."""
    lags = [run.record.results.verdict.measured for run in runs if run.record.results]
    points = [{at.share: at.lag_ms for at in lag.lag_distribution} for lag in lags if lag]
    shares = [share for share in points[0] if all(share in of for of in points)] if points else []
    return tuple(
        LagAtMost(share=share, lag_ms=round(statistics.fmean(of[share] for of in points), 1))
        for share in shares
    )


def _cpu_line(runs: Sequence[Run]) -> CpuLine | None:
    """Return the same linear cost function as in the report's tables, fitted to all of these
    runs."""
    lines = [line for table in tables(runs) for line in table.costs.values()]
    if len(lines) != 1:  # there are several if runs at the same rate have different windows
        return None
    return CpuLine(
        base_pct=_of_line(lines[0].base_pct, lines[0].base_half_pct, lines[0]),
        s_per_million=_of_line(lines[0].per_million_s, lines[0].per_million_half_s, lines[0]),
    )


def _of_line(mean: float, half: float, line: CostLine) -> Estimate:
    return _interval(mean, mean - half, mean + half, line.runs)


def _views(material: Material) -> ViewCheck:
    records = [*material.described, *material.verified]
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
    seen = [run.record.results.noise for run in material.runs if run.record.results]
    noise = [of for of in seen if of]
    cores = [of.core for of in noise]
    cores += [of.core for each in material.searches for of in each.record.last_saturation()]
    speeds = [core.mib_per_s for core in cores if core]
    foreign = [of.foreign_cpu_pct for of in noise if of.foreign_cpu_pct is not None]
    return NoiseRange(
        foreign_cpu_max_pct=max(foreign, default=None),
        steal_max_pct=max((of.steal_pct for of in noise), default=None),
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
