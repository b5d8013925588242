"""From the folders named on the command line to runs, limits and what varied between them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from racetrack import config as settings
from racetrack.errors import UsageError
from racetrack.report.figures import figures_of, runtime_of, warnings_of
from racetrack.results.base import Scalar
from racetrack.results.folder import read_record, read_run
from racetrack.results.run import RunRecord
from racetrack.results.search import PAGEVIEWS, LimitRecord
from racetrack.results.sweep import Sweep
from racetrack.workloads.contract import run_label, workload_of

# Where a run was made and how it is shut off from others says nothing about the engine.
PLACE_ONLY = (
    *("_port", "_password", "_psk", "_pid", "_kafka", "_registry_url"),
    # The runtime that was chosen stands in `runtime`, however it was chosen.
    *("bind_address", "stack_name", "runtime"),
    # What makes a run void.
    *("noise_gate", "_max_pct", "core_speed_min_pct"),
)
# Versions of what measures; they are in the run's details.
RULER = ("racetrack", "python")
WINDOW = "window"
# The raw files of every run, and what is computed from each.
RAW_FILES = {
    "curves.csv": "lag, throughput and verdict",
    "arrivals.csv": "the achieved rate",
    "usage.csv": "CPU and memory",
    "top_samples.log": "CPU by top",
}


@dataclass(frozen=True)
class Run:
    """One run folder: `record` is its `run.json`, `figures` by `definitions.FIGURES`' keys.

    `config` is what may differ between two runs of an engine at a rate: settings and versions.
    """

    path: Path
    record: RunRecord
    figures: Mapping[str, float | None]
    warnings: tuple[str, ...]
    config: Mapping[str, str]

    @property
    def tag(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def engine(self) -> str:
        """As typed on the command line."""
        return self.record.engine

    @property
    def rate(self) -> int:
        """Pageviews per second that were asked for; 0 where the run broke off before it was."""
        return self.record.asked.pageviews_per_s if self.record.asked else 0

    @property
    def outcome(self) -> str:
        """`ok`, or why its figures can't be trusted."""
        return self.record.outcome

    @property
    def why_not(self) -> str:
        """Why its figures don't count, where they don't."""
        if self.outcome != "ok":
            return self.outcome
        return "It has no figures of its own: a run in search of a limit (see its limit.json)."

    @property
    def counts(self) -> bool:
        """Whether its figures may be averaged and compared."""
        return self.outcome == "ok" and self.record.results is not None

    @property
    def verdict(self) -> str:
        """The verdict's kind, `none` where the run broke off before it or offered nothing."""
        if not (self.record.results and self.rate):
            return "none"
        return str(self.record.results.verdict.kind)

    @property
    def place(self) -> tuple[str, str]:
        """Runtime with workload and place of data, and machine: runs that differ in them are never
        in one table."""
        return place_of(self.record)


@dataclass(frozen=True)
class Limit:
    """One limit's folder and what it holds."""

    tag: str
    record: LimitRecord


def place_of(described: RunRecord | LimitRecord) -> tuple[str, str]:
    """Return runtime with workload and place of data, and machine, of a run or a limit."""
    runtime = run_label(runtime_of(described), workload_of(described.settings))
    where = runtime if described.data_in_memory else f"{runtime}, data on disk"
    return where, str(described.machine)


def settings_of(described: RunRecord | LimitRecord) -> dict[str, Scalar]:
    """Of the settings of a run or a limit, those that may change what it found."""
    of_others = settings.of_other_engines(described.engine)
    return {
        name: value
        for name, value in described.settings.items()
        if name not in of_others and not name.endswith(PLACE_ONLY)
    }


@dataclass(frozen=True)
class Collection:
    """The content of a report. `missing` are the runs of a sweep that have no folder (yet);
    `left_out` are folders that are not counted, with the reason."""

    runs: tuple[Run, ...]
    limits: tuple[Limit, ...]
    varied: tuple[str, ...]
    missing: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def limits_by_place(self) -> dict[str, list[Limit]]:
        """The limits that may stand side by side, by `<runtime>: <machine>`, and of what they are
        if not of pageviews."""
        by_place: dict[str, list[Limit]] = {}
        for limit in self.limits:
            of = limit.record.of
            place = ": ".join((*place_of(limit.record), *([of] if of != PAGEVIEWS else [])))
            by_place.setdefault(place, []).append(limit)
        return by_place


@dataclass
class _Found:
    """The results found so far, by folder."""

    runs: dict[Path, Run] = field(default_factory=dict)
    limits: dict[Path, Limit] = field(default_factory=dict)
    varied: dict[str, None] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def take(self, folder: Path) -> bool:
        """Take a folder of results; False if it is none."""
        if (folder / "sweep.json").is_file():
            sweep = read_record(folder / "sweep.json", Sweep)
            varied_in, absent = _of_sweep(folder, sweep)
            self.runs |= {path: _run(path, varied) for path, varied in varied_in.items()}
            self.missing += absent
            self.varied |= {sweep.vary.lower(): None} if sweep.vary else {}
        elif (folder / "limit.json").is_file():
            self._take_limit(folder)
        elif (folder / "run.json").is_file():
            if folder not in self.runs:
                self.runs[folder] = _run(folder, {})
        else:
            # An earlier report or verification holds no figures of its own.
            return any((folder / name).is_file() for name in ("report.json", "verified.json"))
        return True

    def _take_limit(self, folder: Path) -> None:
        """Take the folder of a search; one with the same runs is a copy."""
        record = read_record(folder / "limit.json", LimitRecord)
        for first, limit in self.limits.items():
            if folder != first and record.runs and record == limit.record:
                self.left_out.append(f"{folder} is a copy of {first}: one search counts once.")
                return
        self.limits[folder] = Limit(folder.name, record)

    def take_all_in(self, folder: Path) -> bool:
        """Take the folders of results in a folder, and leave out those that can't be read; False
        if there is none."""
        taken = False
        for inside in sorted(path for path in folder.iterdir() if path.is_dir()):
            try:
                taken |= self.take(inside)
            except UsageError as error:
                self.left_out.append(str(error))
                taken = True
        return taken

    def unique_runs(self) -> tuple[Run, ...]:
        """Return the runs without those that are copies of another."""
        first: dict[str, Run] = {}
        for path, run in self.runs.items():
            same = first.setdefault(run.record.run_id, run)
            if same is not run:
                self.left_out.append(f"{path} is a copy of {same.path}: one run counts once.")
        return tuple(first.values())


def collect(folders: Sequence[Path]) -> Collection:
    """Read run, sweep and limit folders, or those inside a folder such as `logs`. One run counts
    once, however often it is named or copied.

    Raises:
        UsageError: a folder is none of these, or was written by another version.
    """
    found = _Found()
    for folder in map(Path.resolve, folders):
        if not (found.take(folder) or found.take_all_in(folder)):
            raise UsageError(
                f"{folder} holds no run.json, sweep.json or limit.json, and no folder that does."
                " Name folders of results, or the folder that they are in."
            )
    return Collection(
        runs=found.unique_runs(),
        limits=tuple(found.limits.values()),
        varied=tuple(found.varied),
        missing=tuple(found.missing),
        left_out=tuple(found.left_out),
    )


def _of_sweep(folder: Path, sweep: Sweep) -> tuple[dict[Path, dict[str, str]], list[str]]:
    """Return each run's folder with the setting that varied; and the runs that are not there."""
    found, absent = dict[Path, dict[str, str]](), []
    for planned in sweep.runs:
        name = f"{planned.engine} at {planned.pageviews_per_s:,}/s, repeat {planned.repeat}"
        if not planned.tag:
            absent.append(f"{name}: not run")
            continue
        paths = list(_siblings(folder, [planned.tag]))
        if not paths:
            absent.append(f"{name}: {planned.tag} is gone")
        varied = {sweep.vary.lower(): str(planned.value)} if sweep.vary else {}
        found |= dict.fromkeys(paths, varied)
    return found, absent


def _siblings(folder: Path, tags: Iterable[str | None]) -> Iterable[Path]:
    """Run folders beside this one; a tag is a plain name, whatever a file says."""
    for tag in tags:
        if tag and (path := folder.parent / Path(tag).name / "run.json").is_file():
            yield path.parent


def _run(path: Path, varied: Mapping[str, str]) -> Run:
    run = read_run(path)
    heeded = {key: str(value) for key, value in settings_of(run).items()}
    versions = {f"{key} version": value for key, value in run.versions.items() if key not in RULER}
    config = {**heeded, **versions, **_window(run), **_faults(run), **varied}
    warnings = (*missing_files(path, run), *warnings_of(run))
    return Run(path, run, figures_of(run), warnings, config)


def missing_files(folder: Path, run: RunRecord) -> list[str]:
    """Return which raw files a measured run lacks, and what can't be shown or checked for it."""
    if not run.measured:
        return []
    needed = {**RAW_FILES, f"{run.engine}_sample_dt.log": "the delay dt_ms"}
    absent = [f"{name} ({of})" for name, of in needed.items() if not (folder / name).is_file()]
    told = f"Raw files are missing: {', '.join(absent)}. There are no charts of them, and the"
    return [f"{told} figures that the run computed from them can't be checked."] if absent else []


def _window(run: RunRecord) -> dict[str, str]:
    """Memory grows and lag settles: runs over different windows are not repeats."""
    asked = run.asked
    if not asked:
        return {}
    warm_up = f" and {asked.warm_up_s:g} s of warm-up" if asked.warm_up_s else ""
    return {
        WINDOW: f"{asked.samples} samples {asked.delay_s:g} s apart after {asked.wait_s:g} s"
        + warm_up
    }


def _faults(run: RunRecord) -> dict[str, str]:
    """A run under trouble is no repeat of one without."""
    asked = run.asked.faults if run.asked else ()
    return {"faults": ", ".join(asked) if asked else "none"}
