"""Creates the result files in `results/`: the rows of an engine from run folders, with what was
checked and how it was measured."""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from racetrack.analysis import table
from racetrack.analysis.table import Row, Table, changed_settings
from racetrack.analysis.warnings import absent_views, caveats_of, count_views
from racetrack.errors import UsageError
from racetrack.metrics import (
    ACHIEVED,
    AT_RATE,
    CAPACITY,
    CORE_SPEED,
    FOREIGN_CPU,
    MEMORY_READ,
    METRICS,
    OVERALL,
    PROCESSED,
    READ_TIME_P50,
    RSS_MAX,
    STEAL,
    VIEW_LAG_ERROR,
    VIEW_LAG_P50,
    Metric,
    rounded,
)
from racetrack.report.result_check import differ
from racetrack.report.runs import readable
from racetrack.results.base import Scalar
from racetrack.results.experiment import EXPERIMENT_FILE, read_experiment
from racetrack.results.figures import BOUND_BY_OTHERS
from racetrack.results.folder import json_object, read_record, read_run
from racetrack.results.json_file import write_whole
from racetrack.results.published import (
    FAULTY,
    MOST_BYTES,
    EngineResult,
    NoiseRange,
    RawData,
    ViewCheck,
    WindowResult,
)
from racetrack.results.run import ON_DISK, SEARCH, RunArguments, RunRecord
from racetrack.results.verification import ViewStatus

RAW_PATTERNS = (
    "run.json",
    EXPERIMENT_FILE,
    "*.csv",
    "*_sample_dt.log",
    "top_samples.log",
)
DIGITS = 5  # significant digits
# Figures that a result holds; all others are in the run folders only.
_KEPT = (
    ACHIEVED,
    PROCESSED,
    RSS_MAX,
    VIEW_LAG_ERROR,
    VIEW_LAG_P50,
    READ_TIME_P50,
    *AT_RATE,
    *OVERALL,
)
KEPT = tuple(key for key, metric in METRICS.items() if metric in _KEPT)
FIRST_OF_REASON = 200
# Options of a command that name the files it writes.
_OUTPUT = re.compile(r" --(json|csv|markdown)[ =]('[^']*'|\S+)")


@dataclass(frozen=True)
class EngineName:
    """Title of an engine, and the key of its version in `versions` of `run.json`."""

    title: str
    version_part: str


@dataclass
class Material:
    """The rows of one engine with its settings in one place, the records of their runs by folder,
    and texts on what is left out. `verified` are all runs without faults that verified views; those
    with wrong views, or with other settings than an experiment, are used for nothing else."""

    rows: list[Row] = field(default_factory=list)
    records: dict[Path, RunRecord] = field(default_factory=dict)
    verified: dict[Path, RunRecord] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    @property
    def first(self) -> RunRecord:
        """Record of the first row's run, preferably not one with a fault."""
        rows = sorted(self.rows, key=lambda row: row.is_recovery)
        return next(self.records[row.folder] for row in rows if row.folder)


def publish(
    folders: Sequence[Path],
    root: Path,
    engines: Mapping[str, EngineName],
    variant: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write a result file below `root` for each engine, variant, runtime and machine in the
    folders. Return the paths of the files. `say` is called with each folder that can't be read.

    Raises:
        UsageError: there is nothing to publish, or runs of the same engine differ in settings or
            versions.
    """
    rows = readable(table.read(folders))
    for reason in rows.left_out:
        say(f"left out: {reason}")
    made = [result_of(material, engines, variant) for material in gather(rows) if material.rows]
    if not made:
        raise UsageError("There is nothing to publish: no run ended ok with a rate above 0.")
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


def renew(root: Path) -> list[Path]:
    """Write the results below `root` that have the previous schema version again, in this one.
    Return their paths.

    Raises:
        UsageError: a file is not a result.
    """
    renewed = []
    for file in sorted(root.rglob("*.json")):
        result = read_record(file, EngineResult)
        if json_object(file)["schema_version"] != result.schema_version:
            write_whole(file, result.as_text())
            renewed.append(file)
    return renewed


def gather(measured: Table) -> list[Material]:
    """Return the usable rows, for each place and variant. A single run is of the variant from which
    its settings differ least."""
    materials: dict[tuple[str, ...], Material] = {}
    planned: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in measured.rows:
        if row.experiment:
            variants = planned.setdefault((str(row.place), row.engine), {})
            variants.setdefault(row.label, _settings_of(row))
    records = {row.folder: read_run(row.folder) for row in measured.rows if row.folder}
    for row in measured.rows:
        if not row.folder or row.is_trial:
            continue
        # Runs of one variant with other settings or versions are refused later.
        variants = {} if row.experiment else planned.get((str(row.place), row.engine), {})
        mine = _settings_of(row).items()
        label = min(variants, key=lambda of: len(mine ^ variants[of].items()), default=row.label)
        material = materials.setdefault((str(row.place), label), Material())
        record = records[row.folder]
        # What is wrong after a kill is a figure of the recovery.
        if record.verified and not record.faults:
            material.verified[row.folder] = record
        if why := _why_left_out(row, record):
            material.left_out.append(f"{row.tag}, {row.window or 'run'}: {why}"[:FIRST_OF_REASON])
        else:
            material.rows.append(row)
            material.records[row.folder] = record
    for material in materials.values():
        material.rows = _without_other_settings(material)
    return list(materials.values())


def _without_other_settings(material: Material) -> list[Row]:
    """Return the rows without those of single runs that verified views with other settings than the
    experiments have, such as updates and deletions."""
    planned = [_settings_of(row) for row in material.rows if row.experiment]
    return [
        row
        for row in material.rows
        if row.experiment
        or not planned
        or not (row.folder and material.records[row.folder].verified)
        or _settings_of(row) in planned
    ]


def _settings_of(row: Row) -> dict[str, str]:
    return {key: value for key, value in row.config.items() if key not in table.CONDITIONS}


def _why_left_out(row: Row, record: RunRecord) -> str:
    """Return the first reason why a row is not used; empty if it is used."""
    faults = record.arguments.faults if record.arguments else ()
    reasons = (
        "" if row.outcome == "ok" else row.outcome.splitlines()[0],
        f"beside {', '.join(row.beside)}" if row.beside else "",
        "no load" if row.load and not row.load.per_s else "",
        f"{FAULTY} {', '.join(faults)}" if row.load and faults else "",
        f"with the load profile {row.load.profile}" if row.load and row.load.profile else "",
        row.verdict if row.verdict in BOUND_BY_OTHERS else "",
    )
    return next(filter(None, reasons), "")


def result_of(
    material: Material, engines: Mapping[str, EngineName], variant: str = ""
) -> EngineResult:
    """Return the result of an engine.

    Raises:
        UsageError: the runs differ in settings or versions, or the engine's version is unknown.
    """
    first, settings = material.first, _common_settings(material)
    name = engines.get(first.engine, EngineName(first.engine, ""))
    days = sorted(map(_day, material.records.values()))
    row = material.rows[0]
    return EngineResult(
        workload=row.place.workload,
        engine=first.engine,
        title=name.title,
        version=_version(material, name),
        variant=variant or row.label.removeprefix(first.engine).strip("@[]").replace("[", ", "),
        runtime=row.place.runtime + ("" if first.data_in_memory else ON_DISK),
        broker=row.place.broker,
        machine=first.machine,
        measured_from=days[0],
        measured_until=days[-1],
        commands=_commands(material),
        versions=first.versions,
        settings=settings,
        classes=first.classes,
        caveats=tuple(dict.fromkeys(_caveats(material))),
        windows=tuple(_windows(material.rows)),
        views=_views(material),
        noise=_noise(material.rows),
        left_out=tuple(material.left_out),
        raw=raw_data(sorted(_raw_folders(material), key=lambda path: path.name)),
    )


def _windows(rows: Sequence[Row]) -> Iterator[WindowResult]:
    """Yield the windows of rows. A share of what a scout reached is published as a rate, since it
    is another share of what the repeat reached at saturation."""
    capacities = {
        (row.experiment, row.repeat): row.values[CAPACITY.key]
        for row in rows
        if CAPACITY.key in row.values
    }
    for row in rows:
        capacity = capacities.get((row.experiment, row.repeat))
        of_scout = (
            row.load is not None
            and row.share is not None
            and capacity is not None
            and differ(row.share * capacity, row.load.per_s, rounded_to=1)
        )
        yield _window(row, None if of_scout else row.share)


def _window(row: Row, share: float | None) -> WindowResult:
    return WindowResult(
        experiment=row.experiment,
        repeat=row.repeat,
        tag=row.tag,
        window=row.window if row.is_recovery or row.window == SEARCH else "",
        per_s=row.load.per_s if row.load else None,
        share=share,
        verdict=row.verdict,
        figures={key: rounded(row.values[key], DIGITS) for key in KEPT if key in row.values},
        at_least=tuple(sorted(row.at_least)),
        remark=row.remark or None,
    )


def _common_settings(material: Material) -> dict[str, Scalar]:
    """Return the settings that differ from the defaults. They and the versions must be equal in all
    runs; those of recoveries, which share no figure with other runs, may have other settings.

    Raises:
        UsageError: they are not equal.
    """
    recoveries = [row for row in material.rows if row.is_recovery]
    others = [row for row in material.rows if not row.is_recovery]
    differing = _differing(recoveries) | _differing(others)
    of_kinds = _differing(material.rows)
    differing |= {key: of_kinds[key] for key in of_kinds if key.endswith(table.VERSION)}
    if differing:
        shown = "; ".join(
            f"{key.upper()} is {' and '.join(values)}" for key, values in differing.items()
        )
        raise UsageError(
            f"Runs of {material.first.engine} differ: {shown}. Name the folders of one"
            " configuration; --variant names it."
        )
    return _own_settings(material.first)


def _differing(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the values of the settings and versions in which rows differ."""
    configs = {row.conditions: row.config for row in rows}.values()
    keys = dict.fromkeys(key for config in configs for key in config)
    return {
        key: sorted({config.get(key, "not recorded") for config in configs})
        for key in keys
        if key not in table.CONDITIONS and len({config.get(key) for config in configs}) > 1
    }


def _own_settings(record: RunRecord) -> dict[str, Scalar]:
    """Return the settings of a run that differ from the defaults, without derived ones."""
    changed = changed_settings(record)
    return {key: value for key, value in changed.items() if key not in table.DERIVED}


def _version(material: Material, name: EngineName) -> str:
    version = material.first.versions.get(name.version_part, "")
    if not version:
        raise UsageError(
            f"The version of {material.first.engine} is unknown: its runs have no version of"
            f" {name.version_part or 'it'}."
        )
    return version


def _caveats(material: Material) -> Iterator[str]:
    """Yield the caveats of the newest run with figures, since the words of the engine's may have
    changed, and what the plans of the experiments say."""
    folders = [row.folder for row in material.rows if row.folder]
    yield from caveats_of(material.records[max(folders, key=lambda folder: folder.name)])
    with_loads = {row.experiment for row in material.rows if not row.is_recovery}
    labels = {row.label for row in material.rows}
    planned: dict[str, int] = {}
    made: Counter[str] = Counter()
    for folder in _plans(material):
        if folder.name not in with_loads:
            continue
        experiment = read_experiment(folder)
        plan = experiment.name
        runs = [run for run in experiment.runs if run.variant in labels]
        planned[plan] = max(planned.get(plan, 0), len({run.repeat for run in runs}))
        made[plan] += len({run.repeat for run in runs if run.outcome is not None})
        if note := experiment.plan.get("note"):
            yield note
    for plan, repeats in planned.items():
        if made[plan] < repeats:
            yield f"Repeats made by the plan {plan}: {made[plan]} of {repeats}."
    for key in _differing(material.rows):
        recovery, other = (
            next(row.config.get(key) for row in material.rows if row.is_recovery is kind)
            for kind in (True, False)
        )
        yield f"{key.upper()} was {recovery} in recoveries, otherwise {other}."


def _day(record: RunRecord) -> str:
    """Return the day on which a run began."""
    if record.steps:
        return record.steps[0].started_at[:10]
    window = record.measured.window if record.measured else record.windows[0]
    at_ms = window.start_ms or 0
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()


def _views(material: Material) -> ViewCheck:
    records = [*material.records.values(), *material.verified.values()]
    checked = [record.verified for record in material.verified.values() if record.verified]
    wrong = {
        name
        for verified in checked
        for name in verified.named(ViewStatus.WRONG, ViewStatus.UNREADABLE)
    }
    right = [
        name
        for verified in checked
        for name in verified.named(ViewStatus.RIGHT)
        if name not in wrong
    ]
    counts = [count for record in records if (count := count_views(record))]
    return ViewCheck(
        runs=len(checked),
        of_workload=max((count for _, count in counts), default=None),
        right=tuple(dict.fromkeys(right)),
        wrong=tuple(sorted(wrong)),
        absent=tuple(dict.fromkeys(name for record in records for name in absent_views(record))),
    )


def _noise(rows: Sequence[Row]) -> NoiseRange:
    def known(metric: Metric) -> list[float]:
        return [row.values[metric.key] for row in rows if metric.key in row.values]

    speeds, reads_ns = known(CORE_SPEED), known(MEMORY_READ)
    return NoiseRange(
        foreign_cpu_max_pct=max(known(FOREIGN_CPU), default=None),
        steal_max_pct=max(known(STEAL), default=None),
        core_min_mib_per_s=min(speeds, default=None),
        core_max_mib_per_s=max(speeds, default=None),
        memory_read_min_ns=min(reads_ns, default=None),
        memory_read_max_ns=max(reads_ns, default=None),
    )


def _raw_folders(material: Material) -> set[Path]:
    return {*material.records, *material.verified, *_plans(material)}


def _plans(material: Material) -> list[Path]:
    """Return the folders of the experiments from which the rows come."""
    beside = {
        row.folder.parent / row.experiment for row in material.rows if row.folder and row.experiment
    }
    return sorted(path for path in beside if (path / EXPERIMENT_FILE).is_file())


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


def _commands(material: Material) -> tuple[str, ...]:
    """Return the commands that repeat the measurements."""
    records = {row.experiment: material.records[row.folder] for row in material.rows if row.folder}
    planned = [_command_of(path, records[path.name]) for path in _plans(material)]
    single = [
        f"{_prefix(_own_settings(record))}./race run {record.engine} {_options(record.arguments)}"
        for path, record in (material.records | material.verified).items()
        if record.arguments
        and not any(row.experiment for row in material.rows if row.folder == path)
    ]
    return tuple(dict.fromkeys([*planned, *single]))


def _command_of(folder: Path, run: RunRecord) -> str:
    """Return the command of an experiment, with those settings of its run that its plan does not
    give."""
    record = read_experiment(folder)
    of_plan = {name for cell in record.plan.get("cells", ()) for name in cell["settings"]}
    settings = _own_settings(run)
    given = {name: value for name, value in settings.items() if name.upper() not in of_plan}
    return _prefix(given) + _OUTPUT.sub("", record.command)


def _prefix(settings: Mapping[str, Scalar]) -> str:
    return "".join(
        f"{name.upper()}={shlex.quote(_text(value))} " for name, value in settings.items()
    )


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(arguments: RunArguments) -> str:
    verify = " --verify" if arguments.verify else ""
    return (
        f"--rate {arguments.events_per_s} --settle {arguments.wait_s:g}s"
        f" --samples {arguments.samples} --decide-within {arguments.decide_within_s:g}s{verify}"
    )
