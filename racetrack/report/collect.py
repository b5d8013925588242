"""Reads the folders of a report (runs, sweeps and capacity searches), and computes its tables of
means and ratios."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from racetrack import config as settings
from racetrack.analysis import curves, raw
from racetrack.analysis.intervals import CostLine, Ratio, Summary, fit_cost, means, ratio
from racetrack.errors import UsageError
from racetrack.report.figures import (
    BY_KEY,
    COMPARED,
    Grade,
    figures_of,
    runtime_of,
    warnings_of,
)
from racetrack.results.base import Scalar
from racetrack.results.figures import NOT_SUSTAINED
from racetrack.results.folder import (
    RUN_JSON,
    engine_folders,
    read_record,
    read_run,
    run_beside,
    shared_file,
    tag_of,
)
from racetrack.results.repeats import COMPARISON_FILE, SCALE_FILE, ComparisonRecord, ScaleRecord
from racetrack.results.run import RunRecord
from racetrack.results.search import LimitRecord
from racetrack.results.sweep import Sweep
from racetrack.terminal import Progress, no_progress
from racetrack.workloads.contract import run_label, workload_of

# Names of settings that do not affect results, or ends of such names (addresses, ports, secrets).
PLACE_ONLY = (
    "_port",
    "_password",
    "_psk",
    "_pid",
    "_kafka",
    "_registry_url",
    # The record's own `runtime` is used instead.
    "bind_address",
    "stack_name",
    "runtime",
    # Limits of noise beyond which a run is void.
    "noise_gate",
    "_max_pct",
    "core_speed_min_pct",
)
# Settings that searches and comparisons derive from the memory that is free.
DERIVED = ("kafka_retention_bytes",)
# Versions of the harness. They are shown with a run's details, but do not separate runs.
HARNESS_VERSIONS = ("racetrack", "python")
WINDOW = "window"
Record = TypeVar("Record")
# Raw files of every run, and the figures computed from each.
RAW_FILES = {
    "curves.csv": "lag, throughput and verdict",
    "arrivals.csv": "the achieved rate",
    "usage.csv": "CPU and memory",
    "top_samples.log": "CPU by top",
}
OF_TOP = ("top_samples.log",)  # live sessions and runs on Kubernetes have no samples of top
SPREAD_PCT = 20.0
SHORT_LABEL = 2


@dataclass(frozen=True)
class Run:
    """A run folder. `record` is its `run.json`; `figures` has the keys of `figures.FIGURES`.

    `graded` contains its warnings by how much they matter. `config` contains the settings and
    versions by which runs of an engine at the same rate may differ.
    """

    path: Path
    record: RunRecord
    figures: Mapping[str, float | None]
    graded: Mapping[Grade, tuple[str, ...]]
    config: Mapping[str, str]

    @property
    def tag(self) -> str:
        """Name of the folder."""
        return tag_of(self.path)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings, the most serious first."""
        return tuple(warning for of in self.graded.values() for warning in of)

    @property
    def engine(self) -> str:
        """Engine name on the command line."""
        return self.record.engine

    @property
    def rate(self) -> int:
        """Requested pageviews per second; 0 if the run ended before this was recorded."""
        return self.record.arguments.pageviews_per_s if self.record.arguments else 0

    @property
    def outcome(self) -> str:
        """Outcome of the run: `ok`, or why its figures can't be trusted."""
        return self.record.outcome

    @property
    def why_not(self) -> str:
        """Reason why the figures are not used. Only valid if `counts` is false."""
        if self.outcome != "ok":
            return self.outcome
        if self.is_session:
            return "It is a live session: its load changed, so it has no figures to compare."
        return (
            "It belongs to a search, a comparison or a scaling measurement and has no figures of"
            " its own (see limit.json, comparison.json or scale.json)."
        )

    @property
    def is_session(self) -> bool:
        """True for a live session, which has charts but appears in no table."""
        return self.record.live is not None

    @property
    def counts(self) -> bool:
        """True if the figures may be averaged and compared."""
        return self.outcome == "ok" and self.record.results is not None

    @property
    def verdict(self) -> str:
        """Verdict of the run; `none` if the run ended before the verdict, or if its rate was 0."""
        if not (self.record.results and self.rate):
            return "none"
        return str(self.record.results.verdict.kind)

    @property
    def place(self) -> tuple[str, str]:
        """Runtime (with workload and location of data) and machine. Only runs with the same place
        are comparable and share a table."""
        where, machine = place_of(self.record)
        together = "+".join(sorted((self.engine, *self.record.beside)))
        return f"{where}, {together} on one machine" if self.record.beside else where, machine


@dataclass(frozen=True)
class _RecordFolder(Generic[Record]):
    """A folder and its record."""

    path: Path
    record: Record

    @property
    def tag(self) -> str:
        """Name of the folder."""
        return self.path.name


class Limit(_RecordFolder[LimitRecord]):
    """Folder of a capacity search, and its result."""


class ScaleFolder(_RecordFolder[ScaleRecord]):
    """Folder of a scaling measurement, and its record."""


class ComparisonFolder(_RecordFolder[ComparisonRecord]):
    """Folder of a comparison, and its record. A report leaves it out; its runs have no figures of
    their own."""


def place_of(described: RunRecord | LimitRecord) -> tuple[str, str]:
    """Return the runtime (with workload and location of data) and the machine of a run or a
    search."""
    runtime = run_label(runtime_of(described), workload_of(described.settings))
    where = runtime if described.data_in_memory else f"{runtime}, data on disk"
    return where, str(described.machine)


def settings_of(described: RunRecord | LimitRecord) -> dict[str, Scalar]:
    """Return those settings of a run or a search that may have affected its result."""
    beside = described.beside if isinstance(described, RunRecord) else ()
    of_others = settings.of_other_engines(described.engine, *beside)
    return {
        name: value
        for name, value in described.settings.items()
        if name not in of_others and not name.endswith(PLACE_ONLY)
    }


def changed_settings(described: RunRecord | LimitRecord) -> dict[str, Scalar]:
    """Return the settings in `settings_of` that differ from today's defaults."""
    defaults = settings.for_record(settings.defaults())
    return {
        name: value
        for name, value in settings_of(described).items()
        if name in defaults and value != defaults[name]
    }


@dataclass(frozen=True)
class Collection:
    """Content of a report. `varied` are the settings that sweeps varied. `missing` are runs of a
    sweep that have no folder (yet). `left_out` are folders that are ignored, each with the
    reason."""

    runs: tuple[Run, ...]
    limits: tuple[Limit, ...]
    varied: tuple[str, ...]
    missing: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    scales: tuple[ScaleFolder, ...] = ()
    comparisons: tuple[ComparisonFolder, ...] = ()

    @property
    def limits_by_place(self) -> dict[str, list[Limit]]:
        """Capacity searches in groups that are comparable. The key of a group is `<runtime>:
        <machine>`."""
        by_place: dict[str, list[Limit]] = {}
        for limit in self.limits:
            by_place.setdefault(": ".join(place_of(limit.record)), []).append(limit)
        return by_place


@dataclass
class _Found:
    """Results found so far, by folder."""

    runs: dict[Path, Run] = field(default_factory=dict)
    limits: dict[Path, Limit] = field(default_factory=dict)
    scales: dict[Path, ScaleFolder] = field(default_factory=dict)
    comparisons: dict[Path, ComparisonFolder] = field(default_factory=dict)
    varied: dict[str, None] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def take(self, folder: Path) -> bool:
        """Add the folder of a run, a sweep, a search, a scaling measurement or a comparison, or
        name it as left out if it can't be read; return False if it is none of these."""
        with self._leaving_out():
            if (folder / "sweep.json").is_file():
                self._take_sweep(folder)
            elif (folder / "limit.json").is_file():
                self._take_limit(folder)
            elif (folder / SCALE_FILE).is_file():
                scaled = read_record(folder / SCALE_FILE, ScaleRecord)
                self.scales[folder] = ScaleFolder(folder, scaled)
            elif (folder / COMPARISON_FILE).is_file():
                compared = read_record(folder / COMPARISON_FILE, ComparisonRecord)
                self._require_runs(folder, [piece.tag for piece in compared.pieces])
                self.comparisons[folder] = ComparisonFolder(folder, compared)
            elif (folder / RUN_JSON).is_file():
                for path in engine_folders(folder):
                    if path not in self.runs:
                        self._take_run(path, {})
            else:
                # Folders of reports and verifications have no figures of their own.
                return any((folder / name).is_file() for name in ("report.json", "verified.json"))
        return True

    @contextmanager
    def _leaving_out(self) -> Iterator[None]:
        try:
            yield
        except UsageError as error:
            self.left_out.append(str(error))

    def _take_run(self, path: Path, varied: Mapping[str, str]) -> None:
        with self._leaving_out():
            self.runs[path] = _run(path, varied)

    def _take_sweep(self, folder: Path) -> None:
        sweep = read_record(folder / "sweep.json", Sweep)
        varied_in, absent = _of_sweep(folder, sweep)
        for path, varied in varied_in.items():
            self._take_run(path, varied)
        self.missing += absent
        self.varied |= {sweep.vary.lower(): None} if sweep.vary else {}

    def _take_limit(self, folder: Path) -> None:
        """Add the folder of a search, unless it is a copy of another (its record is the same)."""
        record = read_record(folder / "limit.json", LimitRecord)
        self._require_runs(folder, [run.tag for run in record.runs])
        for first, limit in self.limits.items():
            if folder != first and record.runs and record == limit.record:
                self.left_out.append(f"{folder} is a copy of {first}: one search counts once.")
                return
        self.limits[folder] = Limit(folder, record)

    def _require_runs(self, folder: Path, tags: Iterable[str]) -> None:
        """Check that the runs of a search or comparison can be read, as far as they are there.

        Raises:
            UsageError: one can't.
        """
        for path in {path for tag in tags if (path := run_beside(folder, tag))}:
            if path not in self.runs:
                _require_readable(path, read_run(path))

    def take_all_in(self, folder: Path, progress: Progress) -> bool:
        """Add all results in the subfolders of a folder. Return False if there are none."""
        taken, inside = False, sorted(path for path in folder.iterdir() if path.is_dir())
        for done, path in enumerate(inside):
            progress(done, len(inside))
            taken |= self.take(path)
        return taken

    def unique_runs(self) -> tuple[Run, ...]:
        """Return each run once, even if its folder was copied."""
        first: dict[str, Run] = {}
        for path, run in self.runs.items():
            same = first.setdefault(run.record.run_id, run)
            if same is not run:
                self.left_out.append(f"{path} is a copy of {same.path}: one run counts once.")
        return tuple(first.values())


def collect(folders: Sequence[Path], progress: Progress = no_progress) -> Collection:
    """Read folders of runs, sweeps and searches, or folders such as `logs` that contain them.
    Copies of a run are ignored.

    Folders that can't be read, or were written by another version, are left out.

    Raises:
        UsageError: a folder is none of these, or nothing could be read.
    """
    found = _Found()
    for done, folder in enumerate(map(Path.resolve, folders)):
        progress(done, len(folders))
        if not (found.take(folder) or found.take_all_in(folder, progress)):
            raise UsageError(
                f"{folder} has no run.json, sweep.json, limit.json or scale.json, and no folder"
                " with one. Name folders of results, or the folder that contains them."
            )
    if found.left_out and not (found.runs or found.limits or found.scales or found.comparisons):
        raise UsageError("\n".join(found.left_out))
    return Collection(
        runs=found.unique_runs(),
        limits=tuple(found.limits.values()),
        varied=tuple(found.varied),
        missing=tuple(found.missing),
        left_out=tuple(found.left_out),
        scales=tuple(found.scales.values()),
        comparisons=tuple(found.comparisons.values()),
    )


def _of_sweep(folder: Path, sweep: Sweep) -> tuple[dict[Path, dict[str, str]], list[str]]:
    """Return the folder of each run of a sweep with its value of the varied setting, and the runs
    without a folder."""
    found, absent = dict[Path, dict[str, str]](), []
    for planned in sweep.runs:
        name = f"{planned.engine} at {planned.pageviews_per_s:,}/s, repeat {planned.repeat}"
        if not planned.tag:
            absent.append(f"{name}: not run")
            continue
        if path := run_beside(folder, planned.tag):
            found[path] = {sweep.vary.lower(): str(planned.value)} if sweep.vary else {}
        else:
            absent.append(f"{name}: {planned.tag} is gone")
    return found, absent


def _run(path: Path, varied: Mapping[str, str]) -> Run:
    run = read_run(path)
    _require_readable(path, run)
    applicable = {key: str(value) for key, value in settings_of(run).items()}
    versions = {
        f"{key} version": value
        for key, value in run.versions.items()
        if key not in HARNESS_VERSIONS
    }
    config = {**applicable, **versions, **_conditions(run), **varied}
    graded = {grade: tuple(of) for grade, of in warnings_of(run).items()}
    graded[Grade.WRONG] += tuple(missing_files(path, run))
    return Run(path, run, figures_of(run), graded, config)


def _require_readable(folder: Path, run: RunRecord) -> None:
    """Check the raw files of which a report draws charts, so that no chart fails later.

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


def missing_files(folder: Path, run: RunRecord) -> list[str]:
    """Return a warning that names the missing raw files of a measured run."""
    if not run.measured:
        return []
    delay = f"{run.engine}_sample_dt.log"
    no_top = run.live or (run.results and not run.results.top)
    shared = {name: of for name, of in RAW_FILES.items() if not (no_top and name in OF_TOP)}
    needed = {**shared, delay: "the delay dt_ms"}
    files = {**{name: shared_file(folder, name) for name in shared}, delay: folder / delay}
    absent = [f"{name} ({of})" for name, of in needed.items() if not files[name].is_file()]
    warning = (
        f"Raw files are missing: {', '.join(absent)}. Charts of them are left out, and figures that"
        " were computed from them can't be checked."
    )
    return [warning] if absent else []


def _conditions(run: RunRecord) -> dict[str, str]:
    """Return the window with the wait before it, the faults and the load profile as text. Only runs
    in which they are equal are repeats of each other. The window matters, since memory grows and
    lag settles over time."""
    arguments = run.arguments
    if not arguments:
        return {}
    warm_up = f" and {arguments.warm_up_s:g} s of warm-up" if arguments.warm_up_s else ""
    return {
        WINDOW: f"{arguments.samples} samples {arguments.delay_s:g} s apart"
        f" after {arguments.wait_s:g} s{warm_up}",
        "faults": ", ".join(arguments.faults) or "none",
        "load": arguments.load or "one rate",
    }


@dataclass(frozen=True)
class Group:
    """Repeats: runs with the same engine, configuration and rate that ended `ok`."""

    label: str
    rate: int
    runs: tuple[Run, ...]
    means: Mapping[str, Summary | None]

    @property
    def verdicts(self) -> list[tuple[str, int]]:
        """Verdicts with their numbers of runs, the most frequent first."""
        return Counter(run.verdict for run in self.runs).most_common()

    @property
    def verdict(self) -> str:
        """Verdicts as text: `kept up`, or `fell behind 2/3, undecided 1/3` if they differ."""
        kinds, total = self.verdicts, len(self.runs)
        if len(kinds) == 1:
            return kinds[0][0]
        return ", ".join(f"{kind} {count}/{total}" for kind, count in kinds)


@dataclass(frozen=True)
class Comparison:
    """Comparison of the figure `key` of two engines, `of` / `to`, at a rate. If they can't be
    compared, `ratio` is None, and `why_not` is the reason."""

    rate: int
    key: str
    of: str
    to: str
    ratio: Ratio | None
    why_not: str


@dataclass(frozen=True)
class Table:
    """Comparable runs, with the same runtime and machine.

    `differences` are, for each label, the settings and versions that other labels do not share.
    `failed` are runs that did not end `ok`; they are not included in the means.
    """

    runtime: str
    machine: str
    groups: tuple[Group, ...]
    comparisons: tuple[Comparison, ...]
    differences: Mapping[str, str]
    failed: tuple[Run, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of engines and their differences, in the order of the command line."""
        return tuple(dict.fromkeys(group.label for group in self.groups))

    @property
    def rates(self) -> tuple[int, ...]:
        """Rates in pageviews per second, in rising order."""
        return tuple(sorted({group.rate for group in self.groups}))

    @property
    def costs(self) -> dict[str, CostLine]:
        """Base and marginal CPU cost of each engine that was measured at several rates and did not
        fall behind."""
        found = {label: self._cost(label) for label in self.labels}
        return {label: cost for label, cost in found.items() if cost}

    def _cost(self, label: str) -> CostLine | None:
        return fit_cost(
            (run.figures["processed_pageviews_per_s"], run.figures["cpu_mean_pct"])
            for group in self.groups
            if group.label == label
            for run in group.runs
            if run.verdict not in NOT_SUSTAINED
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about repeats that differ so much that their mean is not useful."""
        found = []
        for group in self.groups:
            of = group.means["cpu_mean_pct"]
            if of and max(of.values) - min(of.values) > SPREAD_PCT / 100 * of.mean:
                found.append(
                    f"{group.label} at {group.rate:,}/s: CPU of the repeats is"
                    f" {min(of.values):,.1f} to {max(of.values):,.1f} %, further apart than"
                    f" {SPREAD_PCT:.0f} % of their mean. Noisy machine? Repeat."
                )
        return tuple(found)


def tables(runs: Sequence[Run]) -> tuple[Table, ...]:
    """Return a table for each runtime and machine, in the order of the runs. Live sessions are left
    out."""
    runs = [run for run in runs if not run.is_session]
    places = dict.fromkeys(run.place for run in runs)
    return tuple(_table(place, [run for run in runs if run.place == place]) for place in places)


def _table(place: tuple[str, str], runs: Sequence[Run]) -> Table:
    counted = [run for run in runs if run.counts]
    labels, differences = _labels(counted)
    repeats: dict[tuple[str, int], list[Run]] = {}
    for run in counted:
        repeats.setdefault((labels[run.tag], run.rate), []).append(run)
    order = list(dict.fromkeys(labels.values()))
    groups = tuple(
        Group(label, rate, tuple(of), _means(of))
        for (label, rate), of in sorted(
            repeats.items(), key=lambda item: (item[0][1], order.index(item[0][0]))
        )
    )
    return Table(
        runtime=place[0],
        machine=place[1],
        groups=groups,
        comparisons=tuple(_comparisons(groups)),
        differences=differences,
        failed=tuple(run for run in runs if not run.counts),
    )


def _means(runs: Sequence[Run]) -> dict[str, Summary | None]:
    """Return the mean of each figure; None for figures that were not measured in every repeat."""
    return {**dict.fromkeys(BY_KEY), **means([run.figures for run in runs], BY_KEY)}


def _labels(runs: Sequence[Run]) -> tuple[dict[str, str], dict[str, str]]:
    """Return a label for each run tag (the engine and its differences), and the full text of the
    differences for each label."""
    labels: dict[str, str] = {}
    differences: dict[str, str] = {}
    for engine in dict.fromkeys(run.engine for run in runs):
        mine = [run for run in runs if run.engine == engine]
        variants: dict[str, str] = {}
        for run in mine:
            differ = _differing(run, mine)
            text = ", ".join(f"{key} {run.config.get(key, 'not recorded')}" for key in differ)
            short = f"{engine} [{text}]" if len(differ) <= SHORT_LABEL else f"{engine} #"
            if text not in variants:
                number = str(len(variants) + 1) if short.endswith("#") else ""
                variants[text] = short + number if differ else engine
            labels[run.tag] = variants[text]
            if differ:
                differences[variants[text]] = text
    return labels, differences


def _differing(run: Run, among: Sequence[Run]) -> list[str]:
    """Return the settings and versions in which runs of an engine differ. Window lengths are
    compared only among runs at the same rate, since rates may need different windows."""
    keys = sorted({key for other in among for key in other.config})
    found = []
    for key in keys:
        others = [o for o in among if key != WINDOW or o.rate == run.rate]
        if len({o.config[key] for o in others if key in o.config}) > 1:
            found.append(key)
    return found


def _comparisons(groups: Sequence[Group]) -> list[Comparison]:
    """Compare every label with the first label, at each rate that both have."""
    found = []
    for rate in dict.fromkeys(group.rate for group in groups):
        first, *others = [group for group in groups if group.rate == rate]
        for other in others:
            found += [_compare(key, other, first) for key in COMPARED]
    return found


def _compare(key: str, of: Group, to: Group) -> Comparison:
    for group in (of, to):
        for kind, count in group.verdicts:
            if kind in NOT_SUSTAINED:
                why = f"{group.label}: {kind} in {count} of {len(group.runs)}"
                return Comparison(of.rate, key, of.label, to.label, None, why)
    mine, others = of.means[key], to.means[key]
    if mine is None or others is None:
        return Comparison(of.rate, key, of.label, to.label, None, "not measured in every run")
    found = ratio(mine.values, others.values)
    return Comparison(
        of.rate, key, of.label, to.label, found, "" if found else "a value is not above 0"
    )
