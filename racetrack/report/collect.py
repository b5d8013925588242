"""From the folders named on the command line to runs, limits and what varied between them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack import settings
from racetrack.analysis.curves import CurvesError
from racetrack.analysis.figures import results
from racetrack.errors import UsageError
from racetrack.limit_record import PAGEVIEWS, LimitRecord
from racetrack.record_part import Scalar
from racetrack.report.figures import figures_of, runtime_of, warnings_of
from racetrack.run_record import RunRecord
from racetrack.runfolder import read_record, read_run
from racetrack.sweep_record import Sweep
from racetrack.workload import on_what, workload_of

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
        """The verdict's kind, `none` where an older run has none."""
        judged = self.record.results.verdict if self.record.results else None
        return str(judged.kind) if judged else "none"

    @property
    def place(self) -> tuple[str, str]:
        """Runtime with workload, and machine: runs that differ in them are never in one table."""
        return place_of(self.record)


@dataclass(frozen=True)
class Limit:
    """One limit's folder and what it holds."""

    tag: str
    record: LimitRecord


def place_of(described: RunRecord | LimitRecord) -> tuple[str, str]:
    """Runtime with workload, and machine, of what a run or a limit holds of itself."""
    workload = workload_of(described.settings)
    return on_what(runtime_of(described), workload), str(described.machine)


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
    """What a report is about. `missing` are the runs of a sweep that have no folder (yet)."""

    runs: tuple[Run, ...]
    limits: tuple[Limit, ...]
    varied: tuple[str, ...]
    missing: tuple[str, ...]

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


def collect(folders: Sequence[Path]) -> Collection:
    """Read run, sweep and limit folders; a run that is named twice counts once.

    Raises:
        UsageError: a folder is none of these, or was written by a newer version.
    """
    values: dict[Path, dict[str, str]] = {}
    limits: list[Limit] = []
    varied: list[str] = []
    missing: list[str] = []
    for folder in map(Path.resolve, folders):
        if (folder / "sweep.json").is_file():
            sweep = read_record(folder / "sweep.json", Sweep)
            found, absent = _of_sweep(folder, sweep)
            for path, config in found:
                values[path] = config
            missing += absent
            varied += [sweep.vary.lower()] if sweep.vary else []
        elif (folder / "limit.json").is_file():
            limits.append(
                Limit(
                    folder.name,
                    read_record(folder / "limit.json", LimitRecord),
                )
            )
        elif (folder / "report.json").is_file():
            continue  # an earlier report, caught by `logs/*`
        elif (folder / "verified.json").is_file():
            continue  # what `./race verify` found: no run, and no figures
        elif (folder / "run.json").is_file():
            values.setdefault(folder, {})
        else:
            raise UsageError(
                f"{folder} holds no run.json, sweep.json or limit.json: it is no folder of results."
                " Name folders from logs/."
            )
    runs = tuple(_run(path, config) for path, config in values.items())
    return Collection(runs, tuple(limits), tuple(dict.fromkeys(varied)), tuple(missing))


def _of_sweep(folder: Path, sweep: Sweep) -> tuple[list[tuple[Path, dict[str, str]]], list[str]]:
    """Each run's folder with the setting that varied; and those that are not there."""
    found, absent = [], []
    for planned in sweep.runs:
        name = f"{planned.engine} at {planned.pageviews_per_s:,}/s, repeat {planned.repeat}"
        if not planned.tag:
            absent.append(f"{name}: not run")
            continue
        paths = list(_siblings(folder, [planned.tag]))
        if not paths:
            absent.append(f"{name}: {planned.tag} is gone")
        varied = {sweep.vary.lower(): str(planned.value)} if sweep.vary else {}
        found += [(path, varied) for path in paths]
    return found, absent


def _siblings(folder: Path, tags: Iterable[str | None]) -> Iterable[Path]:
    """Run folders beside this one; a tag is a plain name, whatever a file says."""
    for tag in tags:
        if tag and (path := folder.parent / Path(tag).name / "run.json").is_file():
            yield path.parent


def _run(path: Path, varied: Mapping[str, str]) -> Run:
    run, remade = _with_results(path)
    heeded = {key: str(value) for key, value in settings_of(run).items()}
    versions = {f"{key} version": value for key, value in run.versions.items() if key not in RULER}
    config = {**heeded, **versions, **_window(run), **_faults(run), **varied}
    return Run(path, run, figures_of(run, path), (*remade, *warnings_of(run, path)), config)


def _with_results(path: Path) -> tuple[RunRecord, tuple[str, ...]]:
    """A run, its results made anew if an older version made them; and a remark if that failed."""
    run = read_run(path)
    if run.results is None and run.measured and run.outcome != "unfinished":
        try:
            run.results = results(path)
        except (CurvesError, OSError) as error:
            why = "An older version made this run's figures, in which lag meant something else"
            return run, (f"{why}, and they can't be made anew: {error}",)
    return run, ()


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
