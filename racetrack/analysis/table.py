"""The table from which all reports start: one row per measured window, read from run folders, from
files that `--json` wrote, and from results.

Rows are read from `run.json` only, so a table of hundreds of runs is read in a fraction of a
second.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from racetrack import config, renamed
from racetrack.analysis import windows
from racetrack.analysis.limits import NO_IDLE_TIME
from racetrack.analysis.outcome import run_outcome
from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.analysis.warnings import count_views
from racetrack.errors import UsageError
from racetrack.metrics import (
    ACHIEVED,
    CPU_MEAN,
    LAG_P99,
    MEMORY,
    METRICS,
    NORMAL_AFTER,
    PROCESSED,
    VIEW_LAG_P99,
)
from racetrack.results.base import Scalar
from racetrack.results.classes import KEYS, ClassesOfRun, classes_of_run
from racetrack.results.experiment import EXPERIMENT_FILE, read_experiment
from racetrack.results.figures import BOUND_BY_OTHERS, VerdictKind
from racetrack.results.folder import RUN_JSON, read_record, read_run, run_beside, tag_of
from racetrack.results.published import EngineResult
from racetrack.results.run import SATURATION, TRIAL, RunRecord, WindowRecord, broker_of
from racetrack.results.verification import ViewStatus
from racetrack.units import parse_cores
from racetrack.workloads.contract import work_of

# A rate is held if the engine does not fall behind, and the p99 of the lag stays within this.
HELD_WITHIN_MS = 5_000.0
# Ends of the names of settings that do not affect results: addresses, ports, secrets, and the
# limits of noise beyond which a run is void. The record's own `runtime` is used instead of the
# setting.
PLACE_ONLY = (
    "_port",
    "_password",
    "_psk",
    "_pid",
    "_kafka",
    "_registry_url",
    "bind_address",
    "stack_name",
    "runtime",
    "noise_gate",
    "_max_pct",
    "core_speed_min_pct",  # of earlier versions
)
# Fact of a row: the number of cores to which the engine was restricted; None if it could use all.
ENGINE_CORES = "engine_cores"
# Settings that experiments derive from the memory that is free.
DERIVED = ("kafka_retention_bytes", "logs_folder")
# Versions of the harness. They are shown with a run's details, but do not separate runs.
HARNESS_VERSIONS = ("racetrack", "python")
SETTLED = "window"  # condition that only separates runs at the same rate
CONDITIONS = (SETTLED, "faults")
VERSION = " version"  # end of their keys among the settings
NOT_RECORDED = "not recorded"
CLASS = "class_"  # beginning of the keys of classes in flat records
MOST_IN_LABEL = 2
# Files of folders that have no figures of their own.
NO_FIGURES = ("report.json", "verified.json")
# Records of several runs that earlier versions wrote, with figures of their own.
OF_EARLIER = ("sweep.json", "comparison.json", "scale.json", "limit.json")


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a window: a rate in events per second, and the share of the engine's capacity if
    it was given as one; or a load profile, whose rate is its mean."""

    per_s: int
    share: float | None = None
    profile: str = ""

    @property
    def asked(self) -> "Load":
        """The load as it was asked for: without the rate that a share came to."""
        return self if self.share is None else Load(0, self.share)

    @property
    def order(self) -> tuple[float, int, str]:
        """A key that sorts rates before shares, both rising."""
        return self.share or 0.0, self.per_s, self.profile

    def __str__(self) -> str:
        if self.share is not None:
            return f"{100 * self.share:g} % of capacity"
        return self.profile or f"{self.per_s:,}/s"


@dataclass(frozen=True, slots=True)
class Place:
    """Conditions that must be equal for figures to be comparable."""

    workload: str
    runtime: str
    machine: str
    broker: str = ""
    in_memory: bool = True
    together: str = ""  # engines that shared the machine

    @property
    def comparable(self) -> tuple[str, str, str]:
        """Workload, runtime and broker, which a baseline must have, too."""
        return self.workload, self.runtime, self.broker

    def __str__(self) -> str:
        broker = f", {self.broker}" if self.broker else ""
        disk = "" if self.in_memory else ", data on disk"
        together = f", {self.together} on one machine" if self.together else ""
        return f"{self.workload}, {self.runtime}{broker}{disk}{together}: {self.machine}"


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval of a mean whose single values are unknown, over `n` runs; with the degrees of
    freedom of Student's t, if these are not `n` - 1."""

    low: float | None
    high: float | None
    n: int
    freedom: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A measured window. `variant` is the label of the engine with all settings in which it differs
    from other rows; `label` is the one in its experiment. `load` is None at
    saturation and for figures of a whole run. `config` contains the settings, versions and phases
    that must be equal in repeats; `conditions` is its hash. An absent value was not measured.
    `facts` are the engine's cores and the results of verification, `classes` the known classes of
    the engine.

    `intervals` is only filled for a row that stands for several runs, whose `values` are means."""

    engine: str
    variant: str
    place: Place
    load: Load | None
    window: str
    values: Mapping[str, float]
    label: str = ""
    experiment: str = ""
    tag: str = ""
    run_id: str = ""
    folder: Path | None = None
    beside: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    conditions: str = ""
    repeat: int = 1
    verdict: str = "none"
    outcome: str = "ok"
    at_least: frozenset[str] = frozenset()
    remark: str = ""
    facts: Mapping[str, str | float | None] = field(default_factory=dict)
    classes: ClassesOfRun = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """Share of the engine's capacity that was requested."""
        return self.load.share if self.load else None

    @property
    def is_trial(self) -> bool:
        """True if a search chose the rate. Engines are not compared at such rates."""
        return self.window.startswith(TRIAL)

    @property
    def is_recovery(self) -> bool:
        """True if it has the figures of the recovery from a fault."""
        return any(METRICS[key].per == "fault" for key in self.values if key in METRICS)

    @property
    def is_offered(self) -> bool:
        """True if generator and broker delivered the load to the engine."""
        is_rate = self.load is not None and not self.load.profile
        return is_offered(self.load.per_s if is_rate else 0, self.values, self.verdict)  # type: ignore[union-attr]

    @property
    def held(self) -> bool:
        """True if the load was offered, the engine did not fall behind, and the p99 of the lag of
        the count and of every traced view stayed within HELD_WITHIN_MS."""
        lags_ms = [
            self.values[metric.key]
            for metric in (LAG_P99, VIEW_LAG_P99)
            if metric.key in self.values
        ]
        is_known = bool(lags_ms) and not self.at_least.intersection((LAG_P99.key, VIEW_LAG_P99.key))
        fell_behind = self.verdict == VerdictKind.FELL_BEHIND
        return self.is_offered and not fell_behind and is_known and max(lags_ms) <= HELD_WITHIN_MS

    @property
    def harness_was_busy(self) -> bool:
        """True if cores of everything but the engine had no idle time, so that the lag may be
        theirs."""
        return NO_IDLE_TIME in self.remark


def is_offered(per_s: float, values: Mapping[str, float], verdict: str) -> bool:
    """Return whether generator and broker delivered a rate to the engine, given the figures and the
    verdict of a window."""
    achieved = values.get(ACHIEVED.key)
    missed = achieved is not None and achieved < per_s * (1 - RATE_TOLERANCE)
    return not missed and verdict not in BOUND_BY_OTHERS


@dataclass(frozen=True)
class Table:
    """Rows, and what is not among them: `missing` are planned runs without a folder, `left_out`
    are folders and files that could not be used, each with the reason. `folders` are the run
    folders that were read, those of live sessions included. `meanings` are the settings of variants
    whose labels do not contain them."""

    rows: tuple[Row, ...] = ()
    missing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)

    @property
    def places(self) -> tuple[Place, ...]:
        """Places in the order of the rows."""
        return tuple(dict.fromkeys(row.place for row in self.rows))


def read(paths: Iterable[Path]) -> Table:
    """Read the rows of run folders, folders of experiments, folders that contain such folders, and
    JSON files. Copies of a run count once.

    Raises:
        UsageError: there is nothing to read in any of the paths.
    """
    reader = _Reader()
    for path in map(Path.resolve, paths):
        reader.take(path)
    elsewhere = {folder.name for folder in reader.folders}
    gone = [text for tag, text in reader.gone.items() if tag not in elsewhere]
    missing = (*gone, *reader.missing)
    if not (reader.rows or reader.folders or missing):
        reasons = " ".join(reader.left_out)
        raise UsageError(reasons or "There are no folders to read. Name run folders or results.")
    rows, meanings = _labelled(reader.rows)
    return Table(
        rows, missing, tuple(dict.fromkeys(reader.left_out)), tuple(reader.folders), meanings
    )


@dataclass
class _Reader:
    rows: list[Row] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    gone: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    folders: dict[Path, None] = field(default_factory=dict)
    run_ids: dict[str, Path] = field(default_factory=dict)

    def take(self, path: Path) -> None:
        """Read whatever a path is."""
        if not path.is_dir():
            self._of(path, self._take_file)
        elif not self._take_folder(path):
            inside = [folder for folder in sorted(path.iterdir()) if folder.is_dir()]
            if not sum([self._take_folder(folder) for folder in inside]):
                self.left_out.append(
                    f"{path} has no {RUN_JSON} or {EXPERIMENT_FILE}, and no folder with one. Name"
                    " folders of results, or the folder that contains them."
                )

    def _take_folder(self, folder: Path) -> bool:
        """Read a folder; return False if it is no folder of results."""
        if (folder / EXPERIMENT_FILE).is_file():
            self._of(folder, self._take_experiment)
        elif (folder / RUN_JSON).is_file():
            self._of(folder, self._take_run)
        elif earlier := [name for name in OF_EARLIER if (folder / name).is_file()]:
            self.left_out.append(
                f"{folder} has a {earlier[0]} of an earlier version, whose figures can't be read."
                " Name the run folders beside it, or measure again."
            )
        else:
            return any((folder / name).is_file() for name in NO_FIGURES)
        return True

    def _of(self, path: Path, take: Callable[[Path], None]) -> None:
        try:
            take(path)
        except UsageError as error:
            self.left_out.append(str(error))

    def _take_experiment(self, folder: Path) -> None:
        for planned in read_experiment(folder).runs:
            path = run_beside(folder, planned.tag) if planned.tag else None
            if path:
                self._of(path, self._take_run)
            elif planned.tag:
                self.gone[Path(planned.tag).name] = f"{planned}: {planned.tag} is gone"
            else:
                self.missing.append(f"{planned}: {planned.outcome or 'not run'}")

    def _take_run(self, folder: Path) -> None:
        run = read_run(folder)
        first = self.run_ids.setdefault(run.run_id, folder)
        if first != folder:
            self.left_out.append(f"{folder} is a copy of {first}: one run counts once.")
        elif folder not in self.folders:
            for result in run.engines:
                self._take_run(folder / result.engine)
            if not run.engines:
                self.folders[folder] = None
                self.rows += rows_of(run, folder)

    def _take_file(self, file: Path) -> None:
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{file} can't be read as JSON: {error}.") from error
        records = content.get("records") if isinstance(content, dict) else content
        if isinstance(content, dict) and content.get("kind") == "result":
            self.rows += rows_of_result(read_record(file, EngineResult))
        elif isinstance(records, list) and records:
            self.rows += [from_record(record, file) for record in renamed.in_record(records)]
        else:
            raise UsageError(
                f"{file} contains no figures. Name a file in results/, a file written with --json,"
                " or the folder of a run or an experiment."
            )


def rows_of(run: RunRecord, folder: Path | None = None) -> list[Row]:
    """Return the rows of a run: one per window, and one with the outcome of a run that failed."""
    if run.live:
        return []
    settings = config_of(run)
    part = run.part_of
    # The label of several engines on one input is that of all of them.
    label = part.variant if part and not run.beside else run.engine
    common = Row(
        engine=run.engine,
        variant=label,
        label=label,
        place=place_of(run),
        load=None,
        window="",
        values={},
        experiment=part.experiment if part else "",
        tag=tag_of(folder) if folder else run.tag,
        run_id=run.run_id,
        folder=folder,
        beside=run.beside,
        config=settings,
        conditions=hashed(settings),
        repeat=part.repeat if part else 1,
        outcome=run.outcome,
        facts=_facts(run),
        classes=classes_of_run(run.classes.model_dump(), *(count_views(run) or (None, None))),
    )
    rows = [_of_window(common, window) for window in run.windows]
    if rows and run.outcome in {"ok", *(row.outcome for row in rows)}:
        return rows
    if part and not run.results and run.outcome == "ok":
        return []  # a scout, which only finds the rates of other runs
    whole = _of_results(common, run)
    return [*rows, whole, *_of_faults(whole, run)]


def _engine_cores(settings: Mapping[str, Any]) -> int | None:
    """Return the number of cores that the engine had for itself; None: all."""
    return len(parse_cores(str(settings.get("engine_cpus") or ""))) or None


def _facts(run: RunRecord) -> dict[str, str | float | None]:
    """Return the number of cores that the engine had for itself, the number of its views and of the
    workload's, and which were right."""
    there, of_workload = count_views(run) or (None, None)
    facts: dict[str, str | float | None] = {
        ENGINE_CORES: _engine_cores(run.settings),
        "views_there": there,
        "views_of_workload": of_workload,
        "views_right": None,
        "views_wrong": None,
        "drained_after_s": None,
    }
    if verified := run.verified:
        facts["views_right"] = len(verified.named(ViewStatus.RIGHT))
        facts["views_wrong"] = " ".join(verified.named(ViewStatus.WRONG, ViewStatus.UNREADABLE))
        facts["drained_after_s"] = verified.drained_after_s
    return facts


def _of_window(common: Row, window: WindowRecord) -> Row:
    load = None if window.per_s is None else Load(window.per_s, window.share)
    return replace(
        common,
        load=load,
        window=window.name,
        values=window.figures,
        verdict=window.verdict,
        outcome=window.outcome,
        at_least=frozenset(window.at_least),
        remark=window.remark,
    )


def _of_results(common: Row, run: RunRecord) -> Row:
    """Return the row of a run with one window, or of a run that failed."""
    arguments, results = run.arguments, run.results
    load = (
        Load(arguments.events_per_s, arguments.share, arguments.load or "") if arguments else None
    )
    if run.windows or not results:
        why = "it has no window: it belongs to a plan whose folder was not read"
        outcome = why if run.outcome == "ok" else run.outcome
        return replace(common, load=None if run.windows else load, outcome=outcome)
    verdict = str(results.verdict.kind) if load and load.per_s else "none"
    outcome = common.outcome
    if run.faults and outcome == run_outcome(run):
        outcome = run_outcome(run, ignore_miscounts=True)
    return replace(
        common,
        load=load,
        window=str(load),
        values=windows.values(run),
        verdict=verdict,
        outcome=outcome,
    )


def _of_faults(row: Row, run: RunRecord) -> list[Row]:
    """Return a row with the recovery from the faults of a run, given the row of its window. What
    these did to counts and views are figures, and no reason to leave the run out. The time until
    lags were normal again says nothing of an engine that did not hold the load before."""
    if not (run.faults and run.results and row.outcome == "ok"):
        return []
    lags = [(name, lag) for fault in run.results.faults for name, lag in fault.lags.items()]
    late = [
        f"the lag of {name} was up to {lag.normal_ms / 1000:.1f} s before"
        for name, lag in lags
        if lag.normal_ms > HELD_WITHIN_MS
    ]
    paused_ms = run.measured and run.measured.paused_ms
    watched_s = paused_ms and (paused_ms - run.faults.done[-1].at_ms) / 1000
    watched = f" within {watched_s:.0f} s" if watched_s else ""
    never = [
        f"the lag of {name} was not normal again{watched}"
        for name, lag in lags
        if lag.after_s is None
    ]
    miscounts = [run.outcome] if run.outcome != "ok" else []
    values = windows.recovery(run)
    if late:
        values.pop(NORMAL_AFTER.key, None)
    elif never and watched_s:
        values[NORMAL_AFTER.key] = watched_s
    return [
        replace(
            row,
            load=None,
            window=f"{', '.join(fault.fault for fault in run.faults.done)} at {row.load}",
            values=values,
            at_least=frozenset([NORMAL_AFTER.key] if never and NORMAL_AFTER.key in values else []),
            verdict="none",
            remark="; ".join([*late, *never, *miscounts]),
        )
    ]


def place_of(run: RunRecord) -> Place:
    """Return the place of a run."""
    return Place(
        workload=work_of(run.settings),
        runtime=run.runtime_label,
        machine=str(run.machine),
        broker=run.known_broker,
        in_memory=run.data_in_memory,
        together=_together(run.engine, run.beside),
    )


def _together(engine: str, beside: Sequence[str]) -> str:
    return "+".join(sorted((engine, *beside))) if beside else ""


def config_of(run: RunRecord) -> dict[str, str]:
    """Return the settings, versions and conditions of measurement that must be equal in repeats."""
    versions = {
        f"{key}{VERSION}": value
        for key, value in run.versions.items()
        if key not in HARNESS_VERSIONS
    }
    settings = {key: _text(value) for key, value in settings_of(run).items() if key not in DERIVED}
    return {**settings, **versions, **_conditions(run)}


def settings_of(run: RunRecord) -> dict[str, Scalar]:
    """Return those settings of a run that may have affected its result."""
    of_others = config.of_other_engines(run.engine, *run.beside)
    return {
        name: value
        for name, value in run.settings.items()
        if name not in of_others and not name.endswith(PLACE_ONLY)
    }


def changed_settings(run: RunRecord) -> dict[str, Scalar]:
    """Return the settings in `settings_of` that differ from today's defaults."""
    defaults = config.for_record(config.defaults())
    return {
        name: value
        for name, value in settings_of(run).items()
        if name in defaults and value != defaults[name]
    }


def _conditions(run: RunRecord) -> dict[str, str]:
    """Return the window with the wait before it, and the faults, as text. The window matters, since
    memory grows and lag settles over time."""
    arguments = run.arguments
    if run.part_of and run.part_of.phases:
        return {SETTLED: f"phases {run.part_of.phases}", "faults": "none"}
    if not arguments:
        return {}
    warm_up = f" and {arguments.warm_up_s:g} s of warm-up" if arguments.warm_up_s else ""
    window = (
        f"{arguments.samples} samples {arguments.delay_s:g} s apart after {arguments.wait_s:g} s"
    )
    return {
        SETTLED: f"{window}{warm_up}",
        "faults": ", ".join(arguments.faults) or "none",
    }


def _text(value: Scalar) -> str:
    if value is None or value == "":
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value)


def hashed(settings: Mapping[str, str]) -> str:
    """Return a short hash of settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _labelled(rows: Sequence[Row]) -> tuple[tuple[Row, ...], dict[str, str]]:
    """Return the rows with labels that differ if their conditions do, and the meanings of labels
    that do not contain them. A label gets the settings and versions in which its rows differ, or a
    number if these are many. Runs without an experiment are numbered as repeats."""
    alike: dict[tuple[Place, str], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.place, row.variant), []).append(row)
    labels: dict[tuple[Place, str, str], str] = {}
    meanings: dict[str, str] = {}
    for (place, variant), mine in alike.items():
        by_conditions = {row.conditions: row for row in mine}
        for number, (conditions, row) in enumerate(by_conditions.items(), start=1):
            differing = _differing(row, list(by_conditions.values()))
            text = ", ".join(
                f"{key.upper()}={row.config.get(key, NOT_RECORDED)}" for key in differing
            )
            label = variant
            if len(differing) > MOST_IN_LABEL:
                label = f"{label} #{number}"
                meanings[label] = text
            elif differing:
                label = f"{label}[{text}]"
            labels[place, variant, conditions] = label
    counted: Counter[tuple[object, ...]] = Counter()
    labelled = []
    for row in rows:
        label = labels[row.place, row.variant, row.conditions]
        repeat = row.repeat
        if not row.experiment and row.outcome == "ok":
            at = (row.place, label, row.load)
            counted[at] += 1
            repeat = counted[at]
        labelled.append(replace(row, variant=label, repeat=repeat))
    return tuple(labelled), meanings


def _differing(row: Row, among: Sequence[Row]) -> list[str]:
    """Return the keys of `config` in which rows differ. Windows are compared among rows at the same
    rate only, since rates may need different windows."""
    differing = []
    for key in sorted({key for other in among for key in other.config}):
        others = [other for other in among if key != SETTLED or other.load == row.load]
        if len({other.config[key] for other in others if key in other.config}) > 1:
            differing.append(key)
    return differing


def merged(first: Table, second: Table, names: tuple[str, str]) -> Table:
    """Return two tables as one, whose rows can be compared: with the places of the first table's
    rows, and with the names in labels that both have. The two sets were not measured in turn."""
    shared = {row.variant for row in first.rows} & {row.variant for row in second.rows}
    place = first.rows[0].place if first.rows else None
    rows = [
        replace(
            row,
            variant=f"{row.variant} ({name})" if row.variant in shared else row.variant,
            place=replace(place, together=row.place.together) if place else row.place,
            experiment=f"{name}: {row.experiment}" if row.experiment else "",
        )
        for name, table in zip(names, (first, second), strict=True)
        for row in table.rows
    ]
    return Table(
        tuple(rows),
        (*first.missing, *second.missing),
        (*first.left_out, *second.left_out),
        (*first.folders, *second.folders),
        {**first.meanings, **second.meanings},
    )


def differences(first: Table, second: Table, names: tuple[str, str]) -> list[str]:
    """Return a line for each version, setting and machine in which two tables differ. Settings of
    engines that only one of them has are left out."""
    sides = (first.rows, second.rows)
    engines = [{row.engine for row in rows} for rows in sides]
    own = config.of_other_engines(*(engines[0] & engines[1]))
    lines = []
    if any(row.folder is None for rows in sides for row in rows):
        lines.append("Versions and settings are only compared as far as they are recorded.")
    machines = [{row.place.machine for row in rows} - {""} for rows in sides]
    if machines[0] != machines[1]:
        lines.append(
            "Measured on different machines, which may explain differences:"
            f" {' and '.join(sorted(machines[0] | machines[1]))}."
        )
    configs = [[row.config for row in rows if row.config] for rows in sides]
    if not all(configs):
        return lines
    for key in sorted({key for side in configs for known in side for key in known}):
        differing = [{known.get(key, NOT_RECORDED) for known in side} for side in configs]
        if key not in own and key not in CONDITIONS and differing[0] != differing[1]:
            first_text, other = (" and ".join(sorted(values)) for values in differing)
            lines.append(f"{key.upper()}: {first_text} ({names[0]}), {other} ({names[1]})")
    return lines


def whole_runs(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each run with figures of the whole run: the maximum of its memory, and its
    CPU use extrapolated to rate 0. Runs at one rate each count as one run if they are of the same
    repeat; these have no memory in common. Repeats with fewer loads than others of their variant
    are left out, because memory grows with the number of events in a run; and so are searches."""
    repeats: dict[tuple[Place, str, str, int], list[Row]] = {}
    for row in rows:
        if row.outcome == "ok" and row.load and not (row.intervals or row.is_trial):
            repeats.setdefault((row.place, row.variant, row.experiment, row.repeat), []).append(row)
    most: Counter[tuple[Place, str]] = Counter()
    for (place, variant, *_), mine in repeats.items():
        most[place, variant] = max(most[place, variant], _loads(mine))
    return [
        _whole_run(mine)
        for (place, variant, *_), mine in repeats.items()
        if _loads(mine) == most[place, variant]
    ]


def _loads(rows: Sequence[Row]) -> int:
    return len({row.load.asked for row in rows if row.load})


def _whole_run(rows: Sequence[Row]) -> Row:
    values = {}
    gib = [row.values[MEMORY.key] for row in rows if MEMORY.key in row.values]
    is_one_run = len({row.tag for row in rows}) == 1
    if gib and is_one_run and any(row.held for row in rows):
        values[MEMORY.key] = max(gib)
    points = [
        (row.values[PROCESSED.key], row.values[CPU_MEAN.key])
        for row in rows
        if row.held and PROCESSED.key in row.values and CPU_MEAN.key in row.values
    ]
    values |= windows.base_and_marginal(points)
    return replace(
        rows[0], load=None, window="run", values=values, verdict="none", at_least=frozenset()
    )


def as_record(row: Row) -> dict[str, Any]:
    """Return a row as a flat record, as `--json` and `--csv` write it. A figure is None if it was
    not measured or is infinite."""
    return {
        "run_id": row.run_id,
        "experiment": row.experiment,
        "tag": row.tag,
        "engine": row.engine,
        "variant": row.variant,
        "beside": " ".join(row.beside),
        "workload": row.place.workload,
        "runtime": row.place.runtime,
        "broker": row.place.broker,
        "data_in_memory": row.place.in_memory,
        "machine": row.place.machine,
        "window": row.window,
        "requested_events_per_s": row.load.per_s if row.load else None,
        "share_of_capacity": row.share,
        "load": (row.load.profile or None) if row.load else None,
        "repeat": row.repeat,
        "outcome": row.outcome,
        "verdict": row.verdict,
        "at_least": " ".join(sorted(row.at_least)),
        "remark": row.remark,
        **row.facts,
        **{f"{CLASS}{key}": row.classes.get(key) for key in KEYS},
        **{key: _finite(row.values.get(key)) for key in (*METRICS, *row.values)},
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def from_record(record: Mapping[str, Any], file: Path) -> Row:
    """Return the row of a flat record.

    Raises:
        UsageError: it is not a flat record of a window.
    """
    if not isinstance(record, dict) or not isinstance(record.get("engine"), str):
        raise UsageError(f"{file}: a record has no engine, so it is no record of a run.")
    numbers = ("requested_events_per_s", "share_of_capacity", "repeat")
    for key in numbers:
        value = record.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise UsageError(f"{file}: {key} of a record is {value!r}, which is no number.")
    per_s, share, repeat = map(record.get, numbers)
    beside = tuple(str(record.get("beside") or "").split())
    place = Place(
        workload=str(record.get("workload") or ""),
        runtime=str(record.get("runtime") or ""),
        machine=str(record.get("machine") or ""),
        broker=str(record.get("broker") or broker_of(str(record.get("runtime") or ""))),
        in_memory=record.get("data_in_memory", True) is not False,
        together=_together(record["engine"], beside),
    )
    return Row(
        engine=record["engine"],
        variant=str(record.get("variant") or record["engine"]),
        place=place,
        load=Load(int(per_s), share, str(record.get("load") or "")) if per_s is not None else None,
        window=str(record.get("window") or ""),
        values={
            key: float(value)
            for key in METRICS
            if isinstance(value := record.get(key), int | float) and not isinstance(value, bool)
        },
        experiment=str(record.get("experiment") or file.name),
        tag=str(record.get("tag") or ""),
        run_id=str(record.get("run_id") or ""),
        beside=beside,
        repeat=int(repeat or 1),
        verdict=str(record.get("verdict") or "none"),
        outcome=str(record.get("outcome") or "ok"),
        at_least=frozenset(str(record.get("at_least") or "").split()),
        classes=classes_of_run(
            {key: record.get(f"{CLASS}{key}") for key in KEYS},
            record.get("views_there"),
            record.get("views_of_workload"),
        ),
    )


def rows_of_result(result: EngineResult) -> list[Row]:
    """Return the rows of a published result."""
    name = f"{result.engine}@{result.variant}" if result.variant else result.engine
    common = Row(
        engine=result.engine,
        variant=name,
        place=Place(
            result.workload,
            result.runtime,
            str(result.machine),
            broker=result.broker or broker_of(result.runtime),
        ),
        load=None,
        window="",
        values={},
        facts={ENGINE_CORES: _engine_cores(result.settings)},
        classes=result.classes_of_run,
    )
    rows = []
    for window in result.windows:
        load = None if window.per_s is None else Load(window.per_s, window.share)
        rows.append(
            replace(
                common,
                load=load,
                window=str(load or window.window or SATURATION),
                values=window.figures,
                experiment=window.experiment,
                repeat=window.repeat,
                tag=window.tag,
                run_id=window.tag,
                verdict=window.verdict,
                at_least=frozenset(window.at_least),
                remark=window.remark or "",
                intervals={
                    key: Interval(interval.low, interval.high, interval.n, interval.freedom)
                    for key, interval in window.intervals.items()
                },
            )
        )
    return rows
