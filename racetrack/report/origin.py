"""Origins of recorded figures: workload, runtime, machine, versions and settings. Sets of figures
are comparable only if workload and runtime are equal."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from racetrack import config, plugins
from racetrack.errors import UsageError
from racetrack.report.collect import DERIVED, Limit, Run, changed_settings, place_of
from racetrack.results.base import Scalar
from racetrack.results.folder import read_run, run_beside
from racetrack.results.repeats import UNKNOWN_RUNTIME, RepeatedRuns
from racetrack.results.run import RunRecord
from racetrack.results.search import LimitRecord
from racetrack.workloads.contract import workload_of

SIDES = ("A", "B")
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Origin:
    """Where figures of an engine come from. A text is empty if it is unknown. `settings` are those
    that differ from the defaults. `versions` and `settings` are None if they are unknown, as in
    files that `--json` wrote."""

    engine: str
    workload: str = ""
    runtime: str = ""
    machine: str = ""
    versions: Mapping[str, str] | None = None
    settings: Mapping[str, Scalar] | None = None


def origins_of(runs: Sequence[Run], searches: Sequence[Limit]) -> list[Origin]:
    """Return the origins of runs and searches."""
    of_runs = [_of_record(run.record, run.record.versions) for run in runs]
    return [*of_runs, *(_of_search(search) for search in searches)]


def _of_search(limit: Limit) -> Origin:
    paths = [run_beside(limit.path, run.tag) for run in limit.record.runs]
    versions = next((read_run(path).versions for path in paths if path), None)
    return _of_record(limit.record, versions)


def _of_record(record: RunRecord | LimitRecord, versions: Mapping[str, str] | None) -> Origin:
    workload, (runtime, machine) = workload_of(record.settings), place_of(record)
    runtime = _without_workload(runtime, workload)
    return Origin(record.engine, workload, runtime, machine, versions, changed_settings(record))


def origins_of_plan(record: RepeatedRuns, folder: Path | None = None) -> list[Origin]:
    """Return the origin of each engine of a comparison or a scaling measurement; with versions and
    settings if its runs are next to `folder`."""
    origins = []
    runtime = "" if record.runtime == UNKNOWN_RUNTIME else record.runtime
    for engine in dict.fromkeys(run.engine for run in (*record.order, *record.pieces)):
        tags = [piece.tag for piece in record.pieces if piece.engine == engine and piece.tag]
        paths = {run_beside(folder, tag) for tag in tags} if folder else set()
        runs = [read_run(path) for path in paths if path]
        place = (record.workload, runtime)
        origins += [
            Origin(engine, *place, str(run.machine), run.versions, changed_settings(run))
            for run in runs
        ] or [Origin(engine, *place, str(record.machine))]
    return origins


def origin_of_flat(record: Mapping[str, Any]) -> Origin:
    """Return the origin of a flat record."""
    workload = str(record.get("workload") or "")
    return Origin(
        str(record.get("engine", "")),
        workload,
        _without_workload(str(record.get("runtime") or ""), workload),
        str(record.get("machine") or ""),
    )


def origin_of_result(content: Mapping[str, Any], machine: str) -> Origin:
    """Return the origin of the content of a result file."""
    return Origin(
        str(content.get("engine", "")),
        str(content.get("workload", "")),
        str(content.get("runtime", "")),
        machine,
        content.get("versions"),
        content.get("settings"),
    )


def _without_workload(runtime: str, workload: str) -> str:
    """Return a runtime without what flat records add to it: the workload, and the engines of a run
    that shared the machine."""
    parts = runtime.split(", ")
    return ", ".join(
        part for part in parts if part != workload and not part.endswith(" on one machine")
    )


def require_comparable(
    one: Sequence[Origin], other: Sequence[Origin], names: tuple[str, str] = SIDES
) -> None:
    """Check that all figures of two sets have the same workload and the same runtime.

    Raises:
        UsageError: they do not.
    """
    for kind, option, why in (
        ("workload", "--workload", "the engines did different work"),
        ("runtime", "RUNTIME", "other builds of the services took part"),
    ):
        found = [sorted({getattr(at, kind) for at in side} - {""}) for side in (one, other)]
        if len({value for of in found for value in of}) > 1:
            shown = " and ".join(
                f"{' and '.join(of) or 'unknown'} in {name}"
                for name, of in zip(names, found, strict=True)
            )
            raise UsageError(
                f"Runs of more than one {kind} can't be compared: {shown}. A difference would not"
                f" be the engine's, since {why}. Name runs of one {kind}, or measure again with"
                f" the same {option}."
            )


def differences(
    one: Sequence[Origin], other: Sequence[Origin], names: tuple[str, str] = SIDES
) -> list[str]:
    """Return a line for each version and setting in which two sets differ. Only engines in both
    sets are compared; if there are none, what all engines have in common."""
    shared = {at.engine for at in one} & {at.engine for at in other}
    if shared:
        pairs = [(_only(engine, one), _only(engine, other)) for engine in sorted(shared)]
        lines = [line for mine, others in pairs for line in _differences(mine, others, names)]
    else:
        own = {name for engine in plugins.engine_names() for name in config.of_engine(engine)}
        lines = _differences(one, other, names, own)
    return list(dict.fromkeys(lines))


def _only(engine: str, side: Sequence[Origin]) -> list[Origin]:
    return [at for at in side if at.engine == engine]


def _differences(
    one: Sequence[Origin],
    other: Sequence[Origin],
    names: tuple[str, str],
    of_engines: Collection[str] | None = None,
) -> list[str]:
    """Return the lines for two sets of an engine. If the engines differ, `of_engines` are the names
    of their own settings, which are left out, as are the versions that only one set has."""
    unknown = [
        f"Versions and settings of {name} are not recorded, so they are not compared."
        for side, name in zip((one, other), names, strict=True)
        if any(at.versions is None or at.settings is None for at in side)
    ]
    if unknown:
        return unknown
    lines = []
    versions = [[at.versions or {} for at in side] for side in (one, other)]
    for key in dict.fromkeys(key for side in versions for at in side for key in at):
        found = [{at.get(key, NOT_RECORDED) for at in side} for side in versions]
        if of_engines is None or all(of != {NOT_RECORDED} for of in found):
            lines += _line(f"Version of {key}", found, names)
    settings = [[at.settings or {} for at in side] for side in (one, other)]
    usual = config.for_record(config.defaults())
    for key in dict.fromkeys(key for side in settings for at in side for key in at):
        if key not in (*DERIVED, *(of_engines or ())):
            found = [{_text(at.get(key, usual.get(key))) for at in side} for side in settings]
            lines += _line(key.upper(), found, names)
    return lines


def _line(what: str, found: Sequence[set[str]], names: tuple[str, str]) -> list[str]:
    if found[0] == found[1]:
        return []
    one, other = (" and ".join(sorted(of)) for of in found)
    return [f"{what}: {one} ({names[0]}), {other} ({names[1]})"]


def _text(value: Scalar) -> str:
    if value is None or value == "":
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value)
