"""Recorded figures, by engine and rate: read from exported records, run folders or result files;
as sides of a comparison; and the conditions of `--fail-if` on them, such as `lag_p99_ms>2000`."""

import difflib
import json
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from racetrack.analysis.comparison import BASE, CAPACITY, MEMORY, Figures, Side, base_pct
from racetrack.analysis.intervals import Summary, means, ratio_of, summary
from racetrack.errors import UsageError
from racetrack.report.collect import collect
from racetrack.report.export import FlatRecord, flat_pieces, flat_record, flat_search
from racetrack.report.origin import (
    Origin,
    origin_of_flat,
    origin_of_result,
    origins_of,
    origins_of_plan,
)
from racetrack.results.figures import NOT_SUSTAINED
from racetrack.results.folder import read_plan
from racetrack.results.repeats import ComparisonRecord, ScaleRecord, side_label
from racetrack.results.run import Machine

# Key of repeats: engine, and events per second or load profile; None for figures without a rate,
# such as capacity.
Key = tuple[str, int | str | None]
BESIDE = " beside "
# Figures that have one name in result files and another in comparisons.
NAMES_IN_RESULTS = {
    "capacity": "capacity_per_s",
    "memory_max_gib": "memory_gib",
    "base_pct": "base_cpu_pct",
}
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
# Conditions without a number: name → verdict.
STATES = {"fell_behind": "fell behind", "undecided": "undecided"}
_COMPARISON = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([+-]?)(\d+(?:\.\d+)?)\s*(%?)\s*")


@dataclass(frozen=True)
class Repeats:
    """Runs of an engine with the same load: their figures, their verdicts, the names of all columns
    in their records, including those whose value is unknown, and the figures that are only lower
    bounds."""

    figures: Mapping[str, Summary]
    verdicts: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    lower_bounds: frozenset[str] = frozenset()


Groups = dict[Key, Repeats]


@dataclass(frozen=True)
class Recorded:
    """A set of recorded runs or results, and where they come from."""

    groups: Groups
    origins: tuple[Origin, ...] = ()
    records: tuple[FlatRecord, ...] = ()
    name: str = ""  # of the folders and files

    @property
    def engines(self) -> frozenset[str]:
        """Engines with figures."""
        return frozenset(engine for engine, _ in self.groups)

    @property
    def machines(self) -> frozenset[str]:
        """Machines on which the figures were measured, if they are known."""
        return frozenset(at.machine for at in self.origins) - {""}

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


def _group(repeats: Sequence[FlatRecord]) -> Repeats:
    columns = dict.fromkeys(key for record in repeats for key in record)
    verdicts = frozenset(str(record.get("verdict")) for record in repeats)
    bounds = {CAPACITY.key} if any(record.get("is_lower_bound") for record in repeats) else set()
    return Repeats(means(repeats, columns), verdicts, frozenset(columns), frozenset(bounds))


def read_recorded(paths: Sequence[Path]) -> Recorded:
    """Read figures from folders of runs, sweeps, searches and comparisons, or from JSON files:
    result files, and files written with `--json`.

    Raises:
        UsageError: a path is none of these.
    """
    records: list[FlatRecord] = []
    results: Groups = {}
    origins: list[Origin] = []
    for path in paths:
        if path.is_dir():
            found, of_folder = _read_folder(path)
            records += found
            origins += of_folder
            continue
        content = _content_of(path)
        if isinstance(content, list):
            records += content
            origins += [origin_of_flat(record) for record in content]
        else:
            results |= _of_result(content, path)
            origins.append(origin_of_result(content, _machine(content.get("machine"))))
    groups = {**results, **groups_of(records)}
    name = ", ".join(path.name for path in paths)
    return Recorded(groups, tuple(origins), tuple(records), name)


def _read_folder(path: Path) -> tuple[list[FlatRecord], list[Origin]]:
    for model in (ComparisonRecord, ScaleRecord):
        if (path / f"{model.model_fields['kind'].default}.json").is_file():
            plan = read_plan(path, model)
            return flat_pieces(plan), origins_of_plan(plan, path)
    collection = collect([path])
    runs = [run for run in collection.runs if run.counts]
    records = [flat_record(run) for run in runs]
    records += [flat_search(limit) for limit in collection.limits]
    return records, origins_of(runs, collection.limits)


def _content_of(path: Path) -> list[FlatRecord] | Mapping[str, Any]:
    """Return the flat records in a file, or the content of a result file."""
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
    is_bound = (content.get("capacity") or {}).get("is_lower_bound")
    of_all = Repeats(whole, lower_bounds=frozenset({CAPACITY.key} if is_bound else ()))
    groups: Groups = {(engine, content.get("requested_pageviews_per_s")): of_all}
    for at_rate in content.get("rates", ()):
        verdicts = frozenset(at_rate.get("verdicts", ()))
        groups[engine, at_rate.get("per_s")] = Repeats(_summaries(at_rate), verdicts)
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
            float(of["mean"]),
            of.get("low"),
            of.get("high"),
            int(of.get("n", 1)),
            freedom=of.get("freedom"),
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


def recorded_sides(groups: Groups, name: str) -> list[Side]:
    """Return a side for each engine of recorded runs. `name`, if not empty, becomes part of the
    labels, to distinguish sets of runs of the same engine. Runs with a load profile are left out,
    since they have no constant rate."""
    by_engine: dict[str, dict[int | None, Repeats]] = {}
    for (engine, offered), repeats in groups.items():
        if not isinstance(offered, str):
            by_engine.setdefault(engine, {})[offered] = repeats
    return [
        _recorded_side(f"{engine} ({name})" if name else engine, by_rate)
        for engine, by_rate in by_engine.items()
    ]


def _recorded_side(label: str, by_rate: Mapping[int | None, Repeats]) -> Side:
    figures: Figures = {}
    for rate, repeats in by_rate.items():
        figures |= {(key, rate): each for key, each in repeats.figures.items()}
        if (memory := _recorded_memory(repeats)) and (MEMORY.key, rate) not in figures:
            figures[MEMORY.key, rate] = memory
    if (BASE.key, None) not in figures and (base := _recorded_base(figures)):
        figures[BASE.key, None] = base
    not_sustained = frozenset(
        rate
        for rate, repeats in by_rate.items()
        if rate is not None and repeats.verdicts & NOT_SUSTAINED
    )
    bounds = frozenset(key for repeats in by_rate.values() for key in repeats.lower_bounds)
    return Side(label, figures, not_sustained, bounds)


def _recorded_memory(group: Repeats) -> Summary | None:
    pss, tmpfs = group.figures.get("pss_max_gib"), group.figures.get("tmpfs_max_gib")
    if pss and tmpfs and len(pss.values) == len(tmpfs.values) > 0:
        return summary([one + other for one, other in zip(pss.values, tmpfs.values, strict=True)])
    return pss or group.figures.get("rss_max_gib")


def _recorded_base(figures: Figures) -> Summary | None:
    """Return repeated values of the base CPU: one from the first run at each rate, one from the
    second run at each rate, and so on. None if the rates have different numbers of runs."""
    used = {
        rate: of.values
        for (key, rate), of in figures.items()
        if key == "cpu_mean_pct" and rate is not None and of.values
    }
    if len({len(values) for values in used.values()}) != 1:
        return None
    repeats = zip(*used.values(), strict=True)
    found = [base_pct(list(zip(map(float, used), pct, strict=True))) for pct in repeats]
    known = [pct for pct in found if pct is not None]
    return summary(known) if len(known) == len(found) else None


@dataclass(frozen=True)
class Condition:
    """A condition. `metric` is compared with `bound` by the operator `compares`. If `is_relative`,
    `bound` is a change in percent of the baseline. For a condition without a number, `metric` is
    its name in STATES and `compares` is empty."""

    text: str
    metric: str
    compares: str = ""
    bound: float = 0.0
    is_relative: bool = False


def parse(text: str, metrics: Collection[str]) -> Condition:
    """Parse a condition. `metrics` are the names of figures that it may use.

    Raises:
        ValueError: the condition is invalid; the message contains the remedy.
    """
    name = text.strip()
    if name in STATES:
        return Condition(text, name)
    if not (found := _COMPARISON.fullmatch(text)):
        raise ValueError(
            f"{text!r} is not a condition: write lag_p99_ms>2000, cpu_s_per_million>+10% or"
            " fell_behind, in quotes"
        )
    metric, compares, sign, number, percent = found.groups()
    if metric not in metrics:
        near = difflib.get_close_matches(metric, [*metrics, *STATES], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"there is no figure {metric!r}.{hint} docs/run-folder.md describes them")
    if bool(sign) != bool(percent):
        raise ValueError(
            f"{text!r}: write a change with sign and percent, such as {metric}{compares}+10%, and a"
            f" bound with neither, such as {metric}{compares}2000"
        )
    return Condition(text, metric, compares, float(f"{sign}{number}"), is_relative=bool(percent))


def why_it_holds(
    condition: Condition, group: Repeats, baseline: Mapping[str, Summary] | None
) -> str | None:
    """Return why a condition holds for a group of repeats, with numbers; None if it does not hold.

    A condition also holds if its figure is unknown or infinite, since such runs must not pass a
    gate. With repeats on both sides, a change only counts if the interval of the ratio excludes 1,
    so that noise is not reported as a change.
    """
    if not condition.compares:
        kind = STATES[condition.metric]
        return kind if kind in group.verdicts else None
    value = group.figures.get(condition.metric)
    if value is None:
        return f"{condition.metric} is unknown or infinite"
    if condition.is_relative:
        return _why_change_holds(condition, value, (baseline or {}).get(condition.metric))
    if not OPERATORS[condition.compares](value.mean, condition.bound):
        return None
    return f"{condition.metric} is {value.mean:,.4g}"


def _why_change_holds(
    condition: Condition, value: Summary, reference: Summary | None
) -> str | None:
    if reference is None:
        return f"--against has no {condition.metric} to compare with"
    found = ratio_of(value, reference)
    if found is None:
        return f"{condition.metric} is not above 0 on both sides"
    change_pct = 100 * (found.ratio - 1)
    if not OPERATORS[condition.compares](change_pct, condition.bound):
        return None
    if found.excludes_1 is False:
        return None
    return f"{condition.metric} changed by {change_pct:+.1f} %"
