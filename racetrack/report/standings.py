"""Published results by workload and machine, with estimates and claims, and the columns in which
pages compare them."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import fmean

from racetrack import metrics
from racetrack.analysis.claims import Claim, Estimate, Key, Samples, claims, estimates
from racetrack.analysis.table import Load, Place, Row, rows_of_result
from racetrack.errors import UsageError
from racetrack.metrics import Metric, significant
from racetrack.results.classes import TITLES, differing
from racetrack.results.figures import VerdictKind
from racetrack.results.folder import read_record
from racetrack.results.published import FAULTY, EngineResult, slug_of_place
from racetrack.results.run import SEARCH

_PLACE = Place("", "", "")
HALF = Load(0, 0.5)
NOT_MEASURED = "not measured"
BELOW_SEARCH = "none, even at 5 % of capacity"  # where a search found no rate


@dataclass(frozen=True)
class Column:
    """A column of the matrix: a figure of whole runs, or at a share of the engine's capacity."""

    metric: Metric
    share: float | None = None
    name: str = ""  # if it is not the figure's

    @property
    def title(self) -> str:
        """Name without load and unit."""
        return self.name or self.metric.title

    @property
    def load(self) -> Load | None:
        """The load at which it is measured."""
        return None if self.share is None else Load(0, self.share)

    @property
    def key(self) -> str:
        """Name in the page's data."""
        return self.metric.key if self.share is None else f"{self.metric.key}@{self.share:g}"

    @property
    def heading(self) -> str:
        """Title, load and unit."""
        at = f" at {self.load}" if self.load else ""
        return f"{self.title}{at}, {self.metric.unit}"


MATRIX = (
    *(Column(metric, name=f"how far: {metric.title}") for metric in metrics.SUSTAINED),
    Column(metrics.VIEW_LAG_P99, 0.5, f"freshness: {metrics.VIEW_LAG_P99.title}"),
    Column(metrics.CAPACITY),
    Column(metrics.CPU_PER_MILLION, 0.5),
    Column(metrics.SATURATED_COST),
    Column(metrics.BROKER_FOR_ENGINE, 0.5, "cost in the broker"),
    Column(metrics.BASE_CPU),
    Column(metrics.NORMAL_AFTER, name="recovery from a kill"),
    Column(metrics.MEMORY_FULL_AFTER, name="time until the heap is full at 50 % of capacity"),
)


@dataclass(frozen=True)
class Standing:
    """The results of one workload, machine and runtime, with their rows, estimates and claims.
    Variants are the names of results."""

    results: tuple[EngineResult, ...]
    samples: Samples
    estimates: Mapping[Key, Estimate]
    claims: tuple[Claim, ...]

    @property
    def rows(self) -> Sequence[Row]:
        """Rows of all results."""
        return self.samples.rows

    @property
    def place(self) -> str:
        """Machine, runtime and broker for people."""
        return f"{self.results[0].machine}, {_ran_in(self.results[0])}"

    @property
    def heading(self) -> str:
        """Workload without its queries, machine and runtime, as the heading of a section."""
        first, machine = self.results[0], self.results[0].machine
        facts = (
            machine.cpu_model + (f" ({machine.cpu_numbers})" if machine.cpu_numbers else ""),
            f"{machine.cores} cores",
            machine.quota,
            "" if machine.memory_gib is None else f"{machine.memory_gib:.0f} GiB",
            _ran_in(first),
        )
        return f"{self.family[0]}: {', '.join(filter(None, facts))}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the results."""
        return tuple(map(name_of, self.results))

    @property
    def queries(self) -> str:
        """Queries of the workload, such as `q4`; empty if it has none."""
        return self.results[0].workload.partition(" ")[2]

    @property
    def family(self) -> tuple[str, str]:
        """Workload without its queries, and machine: what the queries of a workload share."""
        workload, machine = place_of(self.results[0])
        return workload.partition(" ")[0], machine

    @property
    def columns(self) -> list[Column]:
        """Columns of the matrix for which any engine has a figure."""
        return [
            column
            for column in MATRIX
            if any(self.estimate(name, column.metric, column.load) for name in self.names)
        ]

    @property
    def by_class(self) -> dict[str, tuple[str, ...]]:
        """Names of the results of each class, by a text such as `where results live: served`, for
        all classes in which they differ."""
        classes = {name_of(result): result.classes_of_run for result in self.results}
        titles = {}
        for key, title in TITLES.items():
            values = dict.fromkeys(own[key] for own in classes.values() if key in own)
            for value in values if len(values) > 1 else ():
                names = (name for name, own in classes.items() if own.get(key) == value)
                titles[f"{title}: {value}"] = tuple(names)
        return titles

    def loads_of(self, metric: Metric) -> list[Load]:
        """Return the loads at which any engine has a figure: rates, then shares, rising."""
        loads = {load for _, key, load in self.estimates if load and key == metric.key}
        return sorted(loads, key=lambda load: load.order)

    def estimate(self, name: str, metric: Metric, load: Load | None) -> Estimate | None:
        """Return the estimate of a figure; None if it was not measured."""
        return self.estimates.get((name, metric.key, load))

    def missed(self, name: str, load: Load | None) -> str:
        """Return in how many runs a result did not hold a load, or fell behind; empty if it held it
        in all."""
        missed, runs = self.samples.missed(name, load), self.samples.windows(name, load)
        if not missed:
            return ""
        fell_behind = all(row.verdict == VerdictKind.FELL_BEHIND for row in missed)
        text = "fell behind" if fell_behind else "not held"
        of_runs = f" in {len(missed)} of {len(runs)} runs" if len(runs) > 1 else ""
        busy = ", with the harness busy" if all(row.harness_was_busy for row in missed) else ""
        return f"{text}{of_runs}{busy}"

    def before_the_kill(self, name: str, *, is_brief: bool = False) -> str:
        """Return after how many events the kills came whose recovery time is known, and how many
        these are, unless all; unless brief, also at what rate and share of the capacity, and why
        others have none. Return an empty text if there is no such time, or the events are
        unknown."""
        kills = [row for row in self.rows if row.variant == name and row.is_recovery]
        timed = [row.values for row in kills if metrics.NORMAL_AFTER.key in row.values]
        others = [row.remark for row in kills if metrics.NORMAL_AFTER.key not in row.values]
        counted, rates = (
            [values[metric.key] for values in timed if metric.key in values]
            for metric in (metrics.COUNTED_BEFORE, metrics.RATE_AT_FAULT)
        )
        if not counted:
            return ""
        facts = [f"after {significant(fmean(counted))} events"]
        capacity = self.estimate(name, metrics.CAPACITY, None)
        if rates and not is_brief:
            share = f", {100 * fmean(rates) / capacity.mean:.0f} % of capacity" if capacity else ""
            facts.append(f"at {significant(fmean(rates))}/s{share}")
        if others:
            such = "" if len({*others}) == 1 else ", such as"
            why = "" if is_brief else f" (not after others{such}: {others[0]})"
            facts.append(f"measured after {len(timed)} of {len(kills)} kills{why}")
        return ", ".join(facts)

    def is_below_search(self, name: str, metric: Metric) -> bool:
        """Return whether a result was searched for the highest rate within a bound, down to 5 % of
        its capacity, and held none."""
        searches = [row for row in self.rows if (row.variant, row.window) == (name, SEARCH)]
        return (
            metric in metrics.SUSTAINED
            and bool(searches)
            and not any(metric.key in {*row.values, *row.at_least} for row in searches)
        )

    def why_not_compared(self, name: str, metric: Metric, load: Load | None) -> str:
        """Return why a figure can't be compared by its value; empty if it can."""
        if self.is_below_search(name, metric):
            return BELOW_SEARCH
        estimate = self.estimate(name, metric, load)
        if estimate is None:
            is_base = metric == metrics.BASE_CPU
            has_rates = is_base and self.estimate(name, metrics.CPU_PER_MILLION, HALF)
            return "CPU use not linear in rate" if has_rates else NOT_MEASURED
        if self.samples.is_wrong((name, metric.key, load)):
            return "views were wrong"
        if not self.samples.is_held((name, metric.key, load)):
            return self.missed(name, load)
        return "" if estimate.is_resolved else f"not resolved: {estimate.why_not}"

    def other_order(self, name: str, metric: Metric, load: Load | None) -> str:
        """Return in which order a share of capacity was measured, if it was another than that of
        the results which are compared; empty otherwise."""
        claim = self._claim(metric, load)
        if not (load and claim):
            return ""
        late = self.samples.after_saturation
        is_late, are_late = ((each, load) in late for each in (name, claim.order[0]))
        if is_late == are_late:
            return ""
        return f"{'after saturation' if is_late else 'on a fresh stack'}, unlike those compared"

    def class_of(self, result: EngineResult) -> str:
        """Return the classes of a result in which results differ; all if they do not."""
        keys = differing(self.samples.classes.values()) or TITLES
        return "; ".join(filter(None, map(result.classes_of_run.get, keys)))

    def leaders(self, column: Column, among: Collection[str]) -> tuple[str, ...]:
        """Return the best of some results in a column, and all from which no difference is claimed
        to it; empty if no difference is claimed at all."""
        if not (claim := self._claim(column.metric, column.load)):
            return ()
        some = claim.among(among)
        return some.leaders if some.order and some.is_decided else ()

    def _claim(self, metric: Metric, load: Load | None) -> Claim | None:
        at = metric, load
        return next((claim for claim in self.claims if (claim.metric, claim.load) == at), None)


def read_results(root: Path) -> list[EngineResult]:
    """Return all results below `root`, sorted by path.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    return [read_result(file, root) for file in sorted(root.rglob("*.json"))]


def read_result(file: Path, root: Path) -> EngineResult:
    """Return the result in a file below `root`.

    Raises:
        UsageError: it is not a result, or its path does not match its content.
    """
    result = read_record(file, EngineResult)
    if file.relative_to(root).as_posix() != result.file_name:
        raise UsageError(
            f"The content of {file} belongs into {result.file_name}: move the file, or publish the"
            " result again."
        )
    return result


def standings(results: Sequence[EngineResult]) -> list[Standing]:
    """Return the results by workload, machine and runtime: first the workload and the machine with
    the most results; queries last, in the order of their numbers."""
    made = []
    for _, of_place in groupby(sorted(results, key=_order), key=place_of):
        mine = tuple(of_place)
        rows = tuple(
            replace(row, variant=name_of(result), place=_PLACE)
            for result in mine
            for row in rows_of_result(result)
        )
        samples = Samples(rows)
        made.append(Standing(mine, samples, estimates(samples), tuple(claims(samples))))
    most: dict[str, int] = {}
    for standing in made:
        workload, _ = standing.family
        most[workload] = max(most.get(workload, 0), len(standing.results))
    return sorted(made, key=lambda standing: _first(standing, most))


def place_of(result: EngineResult) -> tuple[str, str]:
    """Return the workload of a result, and its machine with runtime and broker."""
    return result.workload, slug_of_place(result.machine, result.runtime, result.broker)


def families(places: Sequence[Standing]) -> list[list[Standing]]:
    """Return standings with those of other queries on the same machine beside them."""
    by_family: dict[tuple[str, str], list[Standing]] = {}
    for standing in places:
        by_family.setdefault(standing.family, []).append(standing)
    return list(by_family.values())


def names_of(family: Sequence[Standing]) -> list[str]:
    """Return the names of all results in these standings."""
    return sorted({name for standing in family for name in standing.names})


def columns_of(family: Sequence[Standing]) -> list[Column]:
    """Return the columns for which any of these standings has a figure."""
    known = {column for standing in family for column in standing.columns}
    return [column for column in MATRIX if column in known]


def _order(result: EngineResult) -> tuple[bool, str, str, list[int], tuple[str, str]]:
    place = place_of(result)
    workload, _, queries = place[0].partition(" ")
    numbers = [int(number) for number in re.findall(r"\d+", queries)]
    return bool(queries), workload, place[1], numbers, place


def _first(standing: Standing, most: Mapping[str, int]) -> tuple[bool, int, str, int]:
    has_queries, (workload, _) = bool(standing.queries), standing.family
    many = 0 if has_queries else -len(standing.results)
    return has_queries, -most[workload], workload, many


def _ran_in(result: EngineResult) -> str:
    return ", ".join(filter(None, [result.runtime, result.broker]))


def name_of(result: EngineResult) -> str:
    """Return the name of a result for people: the engine's title, and the variant."""
    return result.title + (f" ({result.variant})" if result.variant else "")


def few_names(names: Sequence[str]) -> str:
    """Return one or two names of results, or how many engines more are."""
    return ", ".join(names) if len(names) < 3 else f"{len(names)} engines"


def answers_of(result: EngineResult) -> str:
    """Return how many of a result's views were right, and what they were after kills."""
    return "; ".join(filter(None, (_views_of(result), answers_after_kills(result))))


def answers_after_kills(result: EngineResult) -> str:
    """Return after how many kills views were wrong, and how many, or that all were right; empty if
    none were checked."""
    key = metrics.WRONG_VIEWS.key
    checked = [round(window.figures[key]) for window in result.windows if key in window.figures]
    kills, wrong = _counted(len(checked), "kill"), [count for count in checked if count]
    if wrong:
        most = f"{'at most ' if len({*wrong}) > 1 else ''}{_counted(max(wrong), 'view')}"
        return f"wrong after {len(wrong)} of {kills} ({most})"
    return f"right after {kills}" if checked else ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _views_of(result: EngineResult) -> str:
    """Return how many of a result's views were right while nothing was killed."""
    views = result.views
    if not views.runs:
        return "not checked"
    whole = "" if views.of_workload is None else f" of {views.of_workload}"
    wrong = f", wrong: {', '.join(views.wrong)}" if views.wrong else ""
    return f"{len(views.right)}{whole} views right{wrong}"


def _left_out(result: EngineResult) -> Iterator[str]:
    """Yield how many windows were left out. Those with a fault are so by design."""
    others = [line for line in result.left_out if FAULTY not in line]
    if others:
        yield f"Windows left out, for the reasons in the result: {len(others)}."


def _apart(result: EngineResult, results: Sequence[EngineResult]) -> Iterator[str]:
    """Yield a caveat if a result is not of the experiment with the most results of its workload and
    machine; of several with as many, the last counts."""
    place = place_of(result)
    counts = Counter(
        experiment
        for other in results
        if place_of(other) == place
        for experiment in _experiments_of(other)
    )
    most = max(counts, key=lambda experiment: (counts[experiment], experiment), default="")
    if most and most not in _experiments_of(result):
        queries = result.workload.partition(" ")[2]
        what = f"{queries} was measured" if queries else "Measured"
        yield f"{what} apart from the others: the machine may have been faster or slower then."


def _experiments_of(result: EngineResult) -> set[str]:
    windows = (window for window in result.windows if not window.window)
    return {window.experiment for window in windows if window.experiment}


def caveats_of(results: Sequence[EngineResult]) -> list[str]:
    """Return the caveats of results, with their missing views and windows, each with the names of
    those concerned."""
    concerned: dict[str, dict[str, None]] = {}
    for result in results:
        absent = ", ".join(result.views.absent)
        missing = [f"The script does not create {absent}."] if absent else []
        for text in (*result.caveats, *missing, *_left_out(result), *_apart(result, results)):
            concerned.setdefault(text, {})[name_of(result)] = None
    return [f"{', '.join(names)}: {text}" for text, names in concerned.items()]
