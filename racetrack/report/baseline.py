"""Figures by engine and rate, of exported records, run folders or result files, for `--against`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from racetrack.analysis.compare import Summary, summary
from racetrack.analysis.conditions import Group
from racetrack.errors import UsageError
from racetrack.report.collect import collect
from racetrack.report.export import FlatRecord, flat_record, flat_search

# Engine, and events per second; None for figures that belong to no rate, such as capacity.
Key = tuple[str, int | None]
Groups = dict[Key, Group]


def groups_of(records: Sequence[FlatRecord]) -> Groups:
    """Group records that ended `ok` by engine and rate, without figures that a repeat lacks."""
    repeats: dict[Key, list[FlatRecord]] = {}
    for record in records:
        if record.get("outcome", "ok") == "ok":
            key = str(record.get("engine", "")), record.get("asked_pageviews_per_s")
            repeats.setdefault(key, []).append(record)
    return {key: _group(of) for key, of in repeats.items()}


def _group(repeats: Sequence[FlatRecord]) -> Group:
    figures = {}
    for key in dict.fromkeys(key for record in repeats for key in record):
        known = [of for record in repeats if isinstance(of := record.get(key), int | float)]
        if len(known) == len(repeats):
            figures[key] = summary(known)
    return Group(figures, frozenset(str(record.get("verdict")) for record in repeats))


def read_groups(paths: Sequence[Path]) -> Groups:
    """Read run folders, sweeps and searches, or JSON files: results, and what `--json` wrote.

    Raises:
        UsageError: a path is none of these.
    """
    folders = [path for path in paths if path.is_dir()]
    found: Groups = {}
    if folders:
        collection = collect(folders)
        records = [flat_record(run) for run in collection.runs if run.counts]
        searches = [flat_search(limit) for limit in collection.limits]
        found |= groups_of([*records, *searches])
    for path in paths:
        if not path.is_dir():
            found |= _of_file(path)
    return found


def _of_file(path: Path) -> Groups:
    try:
        held = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read as JSON: {error}.") from error
    if isinstance(held, dict) and isinstance(held.get("records"), list):
        return groups_of(held["records"])
    made = _of_result(held) if isinstance(held, dict) else {}
    if not any(group.figures for group in made.values()):
        raise UsageError(
            f"{path} holds no figures: give a file of results/, a file that --json wrote, or the"
            " folder of a run."
        )
    return made


def _of_result(held: Mapping[str, Any]) -> Groups:
    """Return the groups of a result file, or of one flat mapping: figure → mean, low, high, n."""
    engine = str(held.get("engine", ""))
    whole = _summaries(held)
    if capacity := whole.pop("capacity", None):
        whole["capacity_per_s"] = capacity
    groups: Groups = {(engine, held.get("asked_pageviews_per_s")): Group(whole)}
    for at_rate in held.get("rates", ()):
        verdicts = frozenset(at_rate.get("verdicts", ()))
        groups[engine, at_rate.get("per_s")] = Group(_summaries(at_rate), verdicts)
    return groups


def _summaries(held: Mapping[str, Any]) -> dict[str, Summary]:
    return {
        key: Summary(float(of["mean"]), of.get("low"), of.get("high"), int(of.get("n", 1)))
        for key, of in held.items()
        if isinstance(of, dict) and isinstance(of.get("mean"), int | float)
    }


def counterpart(groups: Groups, key: Key) -> Mapping[str, Summary] | None:
    """Return the figures to compare those of `key` with: of the same engine, or of the only one
    there is, at the same rate. Figures without a rate belong to every rate."""
    engines = {engine for engine, _ in groups}
    engine = key[0] if key[0] in engines else next(iter(engines)) if len(engines) == 1 else None
    if engine is None:
        return None
    there = [groups[engine, rate] for rate in (None, key[1]) if (engine, rate) in groups]
    return {name: of for group in there for name, of in group.figures.items()} if there else None
