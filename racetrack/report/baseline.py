"""Reads recorded figures, by engine and rate, from exported records, run folders or result
files."""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from racetrack.analysis.compare import Summary, summary
from racetrack.analysis.conditions import Group
from racetrack.errors import UsageError
from racetrack.report.collect import collect
from racetrack.report.comparison import flat_pieces
from racetrack.report.export import FlatRecord, flat_record, flat_search
from racetrack.results.comparison import ComparisonRecord
from racetrack.results.folder import read_plan
from racetrack.results.repeats import side_label
from racetrack.results.run import Machine
from racetrack.results.scale import ScaleRecord

# Key of a group: engine, and events per second or load profile; None for figures without a rate,
# such as capacity.
Key = tuple[str, int | str | None]
Groups = dict[Key, Group]
BESIDE = " beside "
# Figures that have one name in result files and another in comparisons.
NAMES_IN_RESULTS = {
    "capacity": "capacity_per_s",
    "memory_max_gib": "memory_gib",
    "base_pct": "base_cpu_pct",
}


@dataclass(frozen=True)
class Recorded:
    """A set of recorded runs or results, and the machines on which they were measured."""

    groups: Groups
    machines: frozenset[str] = frozenset()
    records: tuple[FlatRecord, ...] = ()
    name: str = ""  # of the folders and files

    @property
    def engines(self) -> frozenset[str]:
        """Engines with figures."""
        return frozenset(engine for engine, _ in self.groups)

    def counterpart(self, key: Key) -> Mapping[str, Summary] | None:
        """Return the figures to compare with the figures of `key`: figures of the same engine at
        the same rate, and figures without a rate. If this set has only one engine, its figures are
        used for every engine. None if there are no such figures."""
        alone = next(iter(self.engines)) if len(self.engines) == 1 else None
        if alone and (BESIDE in alone) != (BESIDE in key[0]):
            alone = None
        engine = key[0] if key[0] in self.engines else alone
        keys = [(engine, rate) for rate in dict.fromkeys((None, key[1])) if engine is not None]
        there = [self.groups[each] for each in keys if each in self.groups]
        return {name: of for group in there for name, of in group.figures.items()} or None


def groups_of(records: Sequence[FlatRecord]) -> Groups:
    """Group records that ended `ok` by engine and load. Figures that any repeat lacks are left
    out."""
    repeats: dict[Key, list[FlatRecord]] = {}
    for record in records:
        if record.get("outcome", "ok") == "ok":
            # The rate of a load profile is only its mean.
            offered = record.get("load") or record.get("requested_pageviews_per_s")
            key = _label(record), offered
            repeats.setdefault(key, []).append(record)
    return {key: _group(of) for key, of in repeats.items()}


def _label(record: FlatRecord) -> str:
    """Return the engine; with the others that shared the machine, and with its number of replicas
    if it had several, since only runs with the same ones are comparable."""
    beside = str(record.get("beside") or "").split()
    engine = side_label(str(record.get("engine", "")), int(record.get("replicas") or 1))
    return BESIDE.join((engine, *beside))


def _group(repeats: Sequence[FlatRecord]) -> Group:
    figures = {}
    columns = dict.fromkeys(key for record in repeats for key in record)
    for key in columns:
        known = [of for record in repeats if isinstance(of := record.get(key), int | float)]
        if len(known) == len(repeats):
            figures[key] = summary(known)
    verdicts = frozenset(str(record.get("verdict")) for record in repeats)
    return Group(figures, verdicts, frozenset(columns))


def read_recorded(paths: Sequence[Path]) -> Recorded:
    """Read figures from folders of runs, sweeps, searches and comparisons, or from JSON files:
    result files, and files written with `--json`.

    Raises:
        UsageError: a path is none of these.
    """
    records: list[FlatRecord] = []
    results: Groups = {}
    machines: set[str] = set()
    for path in paths:
        content = _content_of(path)
        if isinstance(content, list):
            records += content
        else:
            results |= _of_result(content, path)
            machines.add(_machine(content.get("machine")))
    machines |= {str(record.get("machine")) for record in records}
    groups = {**results, **groups_of(records)}
    name = ", ".join(path.name for path in paths)
    return Recorded(groups, frozenset(machines - {""}), tuple(records), name)


def _content_of(path: Path) -> list[FlatRecord] | Mapping[str, Any]:
    """Return the flat records of a path, or the content of a result file."""
    for model in (ComparisonRecord, ScaleRecord):
        if (path / f"{model.model_fields['kind'].default}.json").is_file():
            return flat_pieces(read_plan(path, model))
    if path.is_dir():
        collection = collect([path])
        runs = [flat_record(run) for run in collection.runs if run.counts]
        return [*runs, *(flat_search(limit) for limit in collection.limits)]
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read as JSON: {error}.") from error
    if isinstance(content, dict) and isinstance(content.get("records"), list):
        return [dict(record) for record in content["records"]]
    return content if isinstance(content, dict) else {}


def _of_result(content: Mapping[str, Any], path: Path) -> Groups:
    """Return the groups of a result file, or of a flat mapping of figures to mean, low, high and
    n."""
    engine = str(content.get("engine", ""))
    whole = _summaries({**content, **(content.get("cpu_line") or {})})
    whole.pop("s_per_million", None)  # the marginal cost, not the mean cost of all events
    groups: Groups = {(engine, content.get("requested_pageviews_per_s")): Group(whole)}
    for at_rate in content.get("rates", ()):
        verdicts = frozenset(at_rate.get("verdicts", ()))
        groups[engine, at_rate.get("per_s")] = Group(_summaries(at_rate), verdicts)
    if not any(group.figures for group in groups.values()):
        raise UsageError(
            f"{path} contains no figures. Name a file in results/, a file written with --json, or"
            " the folder of a run, sweep, search or comparison."
        )
    return groups


def _machine(content: object) -> str:
    if not isinstance(content, dict):
        return ""
    try:
        return str(Machine.model_validate(content, extra="ignore"))
    except ValidationError:
        return ""


def _summaries(content: Mapping[str, Any]) -> dict[str, Summary]:
    """Return the figures that have a mean."""
    return {
        NAMES_IN_RESULTS.get(key, key): Summary(
            float(of["mean"]), of.get("low"), of.get("high"), int(of.get("n", 1))
        )
        for key, of in content.items()
        if isinstance(of, dict) and isinstance(of.get("mean"), int | float)
    }


def place_warnings(sides: Sequence[AbstractSet[str]]) -> list[str]:
    """Return a warning if the sides, each given as its machines, were measured on different
    machines."""
    machines = sorted(frozenset[str]().union(*sides))
    if len(machines) < 2:
        return []
    return [f"measured on different machines, which may explain differences: {'; '.join(machines)}"]
