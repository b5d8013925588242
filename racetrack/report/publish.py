"""Creates the result files in `results/` from run folders."""

import hashlib
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from racetrack.analysis import compare
from racetrack.analysis.compare import CostLine
from racetrack.errors import UsageError
from racetrack.report import repeat
from racetrack.report.collect import NOT_COMPARED, changed_settings, settings_of
from racetrack.report.figures import (
    absent_views,
    count_views,
    format_significant,
    runtime_of,
    view_caveats,
)
from racetrack.report.material import Material, Sample, Throughput, gather
from racetrack.results.base import Scalar
from racetrack.results.comparison import QUICK
from racetrack.results.figures import LagAtMost
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
DERIVED = ("kafka_retention_bytes",)
DIGITS = 5  # significant digits
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
        runtime=runtime_of(first) + ("" if first.data_in_memory else ", data on disk"),
        machine=first.machine,
        measured_from=min(days),
        measured_until=max(days),
        commands=repeat.commands(first.engine, settings, material),
        versions=first.versions,
        settings=settings,
        guarantee=first.guarantee,
        caveats=_caveats(material),
        capacity=_capacity(material.throughputs),
        sustained=_sustained(material.throughputs),
        rates=tuple(_at_rate(rate, samples) for rate, samples in _by_rate(material.samples)),
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
        name: sorted({str(of.get(name, "not set")) for of in all_of})
        for name in all_of[0]
        if len({str(of.get(name, "not set")) for of in all_of}) > 1
    }
    if differing:
        shown = "; ".join(f"{name.upper()} is {' and '.join(of)}" for name, of in differing.items())
        raise UsageError(
            f"Runs of {records[0].engine} differ in settings: {shown}. Name the folders of one"
            " configuration; --variant names it."
        )
    return _chosen(changed_settings(records[0]))


def _chosen(settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the settings without those that searches and comparisons derive from the memory that
    is free."""
    return {name: value for name, value in settings.items() if name not in DERIVED}


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
    found = [text for of in material.records.values() for text in (*view_caveats(of), *of.caveats)]
    found += [QUICK for comparison in material.comparisons if comparison.is_quick]
    return tuple(dict.fromkeys(found))


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of repeats with its 95 % interval (Student's t), clipped at 0."""
    found = compare.summary(values)
    return _interval(found.mean, found.low, found.high, found.n)


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


def _capacity(found: Sequence[Throughput]) -> CapacityEstimate | None:
    if not found:
        return None
    of = estimate([one.per_s for one in found])
    if len(found) == 1:
        of = _interval(of.mean, found[0].low, found[0].high, 1)
    return CapacityEstimate(**dict(of), is_lower_bound=any(one.is_lower_bound for one in found))


def _sustained(throughputs: Sequence[Throughput]) -> tuple[Sustained, ...]:
    found = []
    rates = [one for each in throughputs for one in each.sustainable]
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
                sustained_per_s=estimate(sustained_rates) if sustained_rates else None,
                failed_per_s=min(failed, default=None),
            )
        )
    return tuple(found)


def _by_rate(samples: Sequence[Sample]) -> list[tuple[int, list[Sample]]]:
    rates = sorted({sample.rate for sample in samples})
    return [(rate, [sample for sample in samples if sample.rate == rate]) for rate in rates]


def _at_rate(rate: int, samples: Sequence[Sample]) -> RateFigures:
    figures = {key: [sample.figures.get(key) for sample in samples] for key in FIGURES}
    figures["memory_max_gib"] = [_memory_gib(sample) for sample in samples]
    known = {
        key: estimate([value for value in values if value is not None])
        for key, values in figures.items()
        if None not in values
    }
    return RateFigures(
        per_s=rate,
        verdicts=dict(Counter(sample.verdict for sample in samples)),
        lag_distribution=_distribution(samples),
        **known,
    )


def _memory_gib(sample: Sample) -> float | None:
    pss, tmpfs = sample.figures.get("pss_max_gib"), sample.figures.get("tmpfs_max_gib")
    return None if pss is None else pss + (tmpfs or 0.0)


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
    line = compare.fit_cost(
        (of.figures.get("processed_pageviews_per_s"), of.figures.get("cpu_mean_pct"))
        for of in samples
        if of.verdict not in NOT_COMPARED
    )
    if line is None:
        return None
    return CpuLine(
        base_pct=_of_line(line.base_pct, line.base_half_pct, line),
        s_per_million=_of_line(line.per_million_s, line.per_million_half_s, line),
    )


def _of_line(mean: float, half: float, line: CostLine) -> Estimate:
    return _interval(mean, mean - half, mean + half, line.runs)


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
    speeds += [speed for of in material.throughputs for speed in of.core_mib_per_s]
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
