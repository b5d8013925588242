"""From the folders named on the command line to runs, limits and what varied between them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from racetrack.errors import UsageError
from racetrack.report.figures import figures_of, runtime_of, warnings_of
from racetrack.runfolder import SCHEMA_VERSION, read_run

# Where a run was made and how it is shut off from others says nothing about the engine.
PLACE_ONLY = (
    *("_port", "_password", "_psk", "_pid", "_kafka", "_registry_url"),
    # The runtime that was chosen stands in `runtime`, however it was chosen.
    *("bind_address", "stack_name", "runtime"),
)
# Versions of what measures; they are in the run's details.
RULER = ("racetrack", "python")
WINDOW = "window"


@dataclass(frozen=True)
class Run:
    """One run folder: `json` is its `run.json`, `figures` by `definitions.FIGURES`' keys.

    `config` is what may differ between two runs of an engine at a rate: settings and versions.
    """

    path: Path
    json: Mapping[str, Any]
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
        return str(self.json["engine"])

    @property
    def rate(self) -> int:
        """Pageviews per second that were asked for; 0 where the run broke off before it was."""
        return int(self.json.get("asked", {}).get("pageviews_per_s", 0))

    @property
    def outcome(self) -> str:
        """`ok`, or why its figures can't be trusted."""
        return str(self.json.get("outcome", "unfinished"))

    @property
    def why_not(self) -> str:
        """Why its figures don't count, where they don't."""
        if self.outcome != "ok":
            return self.outcome
        return "It has no figures of its own: the climb in search of a limit."

    @property
    def counts(self) -> bool:
        """Whether its figures may be averaged and compared."""
        return self.outcome == "ok" and "results" in self.json

    @property
    def verdict(self) -> str:
        """The verdict's kind, `none` where an older run has none."""
        return str(self.json.get("results", {}).get("verdict", {}).get("kind", "none"))

    @property
    def track(self) -> tuple[str, str]:
        """Runtime and machine: runs that differ in them are never in one table."""
        return track_of(self.json)


def track_of(described: Mapping[str, Any]) -> tuple[str, str]:
    """Runtime and machine, of what a run or a limit holds of itself."""
    machine = described.get("machine", {})
    where = (
        f"{machine.get('cpu_model', 'unknown CPU')}, {machine.get('cores', '?')} cores,"
        f" {machine.get('memory_gib', '?')} GiB"
    )
    return runtime_of(described), where


@dataclass(frozen=True)
class Collection:
    """What a report is about. `missing` are the runs of a sweep that have no folder (yet)."""

    runs: tuple[Run, ...]
    limits: tuple[Mapping[str, Any], ...]
    varied: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def limits_by_track(self) -> dict[str, list[Mapping[str, Any]]]:
        """The limits that may stand side by side, by `<runtime>: <machine>`."""
        by_track: dict[str, list[Mapping[str, Any]]] = {}
        for limit in self.limits:
            by_track.setdefault(": ".join(track_of(limit)), []).append(limit)
        return by_track


def collect(folders: Sequence[Path]) -> Collection:
    """Read run, sweep and limit folders; a run that is named twice counts once.

    Raises:
        UsageError: a folder is none of these, or was written by a newer version.
    """
    values: dict[Path, dict[str, str]] = {}
    limits: list[Mapping[str, Any]] = []
    varied: list[str] = []
    missing: list[str] = []
    for folder in map(Path.resolve, folders):
        if (folder / "sweep.json").is_file():
            sweep = _read(folder / "sweep.json")
            found, absent = _of_sweep(folder, sweep)
            for path, config in found:
                values[path] = config
            missing += absent
            varied += [sweep["vary"].lower()] if sweep.get("vary") else []
        elif (folder / "limit.json").is_file():
            limit = _read(folder / "limit.json")
            limits.append({**limit, "tag": folder.name})
            for path in _siblings(folder, [entry["tag"] for entry in limit["confirm"]]):
                values.setdefault(path, {})
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


def _of_sweep(
    folder: Path, sweep: Mapping[str, Any]
) -> tuple[list[tuple[Path, dict[str, str]]], list[str]]:
    """Each run's folder with the setting that varied; and those that are not there."""
    found, absent = [], []
    for entry in sweep["runs"]:
        name = f"{entry['engine']} at {entry['pageviews_per_s']:,}/s, repeat {entry['repeat']}"
        if not entry["tag"]:
            absent.append(f"{name}: not run")
            continue
        paths = list(_siblings(folder, [entry["tag"]]))
        if not paths:
            absent.append(f"{name}: {entry['tag']} is gone")
        for path in paths:
            varies = sweep.get("vary")
            found.append((path, {varies.lower(): str(entry["value"])} if varies else {}))
    return found, absent


def _siblings(folder: Path, tags: Iterable[str | None]) -> Iterable[Path]:
    """Run folders beside this one; a tag is a plain name, whatever a file says."""
    for tag in tags:
        if tag and (path := folder.parent / Path(tag).name / "run.json").is_file():
            yield path.parent


def _run(path: Path, varied: Mapping[str, str]) -> Run:
    try:
        run = read_run(path)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path / 'run.json'} is not JSON ({error}): leave it out.") from error
    _check_version(path / "run.json", run)
    settings = {
        key: str(value)
        for key, value in run.get("settings", {}).items()
        if not key.endswith(PLACE_ONLY)
    }
    versions = {
        f"{key} version": str(value)
        for key, value in run.get("versions", {}).items()
        if key not in RULER
    }
    config = {**settings, **versions, **_window(run), **_faults(run), **varied}
    return Run(path, run, figures_of(run, path), warnings_of(run, path), config)


def _window(run: Mapping[str, Any]) -> dict[str, str]:
    """Memory grows and lag settles: runs over different windows are not repeats."""
    asked = run.get("asked")
    if not asked:
        return {}
    warm_up_s = asked.get("warm_up_s")
    return {
        WINDOW: f"{asked['samples']} samples {asked['delay_s']:g} s apart after"
        f" {asked['wait_s']:g} s" + (f" and {warm_up_s:g} s of warm-up" if warm_up_s else "")
    }


def _faults(run: Mapping[str, Any]) -> dict[str, str]:
    """A run under trouble is no repeat of one without."""
    asked = run.get("asked", {}).get("faults")
    return {"faults": ", ".join(asked) if asked else "none"}


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    _check_version(path, found)
    return found


def _check_version(path: Path, found: Mapping[str, Any]) -> None:
    version = found.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{path} has schema version {version}; this Racetrack reads {SCHEMA_VERSION}."
            " Use the Racetrack that wrote it."
        )
