"""From runs to tables: which runs are repeats of each other, their means, and engines' ratios."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from racetrack.analysis.compare import CostLine, Mean, Ratio, fit_cost, mean, ratio
from racetrack.report.collect import WINDOW, Run
from racetrack.report.definitions import COMPARED, FIGURES

# Nothing is said about an engine that was not measured at the rate, or could not hold it.
NOT_COMPARED = ("fell behind", "generator-bound", "broker-bound")
SPREAD_PCT = 20.0
SHORT_LABEL = 2


@dataclass(frozen=True)
class Group:
    """Repeats: runs of one engine, one configuration, one rate; only those that ended `ok`."""

    label: str
    rate: int
    runs: tuple[Run, ...]
    means: Mapping[str, Mean | None]

    @property
    def verdicts(self) -> list[tuple[str, int]]:
        """Each kind of verdict with how many runs got it, the most frequent first."""
        return Counter(run.verdict for run in self.runs).most_common()

    @property
    def verdict(self) -> str:
        """`kept up`, or `fell behind 2/3, undecided 1/3`."""
        kinds, total = self.verdicts, len(self.runs)
        if len(kinds) == 1:
            return kinds[0][0]
        return ", ".join(f"{kind} {count}/{total}" for kind, count in kinds)


@dataclass(frozen=True)
class Comparison:
    """One figure of two engines at one rate; `ratio` is None where they can't be compared, and
    `why_not` then says why."""

    rate: int
    key: str
    of: str
    to: str
    ratio: Ratio | None
    why_not: str


@dataclass(frozen=True)
class Table:
    """All that may stand side by side: one runtime, one machine.

    `differences` tells of each label in what it differs from the others; `failed` are the runs
    that did not end `ok`, whose figures are in no mean.
    """

    runtime: str
    machine: str
    groups: tuple[Group, ...]
    comparisons: tuple[Comparison, ...]
    differences: Mapping[str, str]
    failed: tuple[Run, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Engines (with what sets them apart) in the order in which they were named."""
        return tuple(dict.fromkeys(group.label for group in self.groups))

    @property
    def rates(self) -> tuple[int, ...]:
        """Pageviews per second, rising."""
        return tuple(sorted({group.rate for group in self.groups}))

    @property
    def costs(self) -> dict[str, CostLine]:
        """Base and marginal CPU of each engine that was measured at several rates and held them."""
        found = {label: self._cost(label) for label in self.labels}
        return {label: cost for label, cost in found.items() if cost}

    def _cost(self, label: str) -> CostLine | None:
        runs = [
            run
            for group in self.groups
            if group.label == label
            for run in group.runs
            if run.verdict not in NOT_COMPARED
        ]
        of = ("processed_pageviews_per_s", "cpu_mean_pct")
        pairs = [(run.figures[of[0]], run.figures[of[1]]) for run in runs]
        known = [(rate, pct) for rate, pct in pairs if rate and pct is not None]
        return fit_cost([rate for rate, _ in known], [pct / 100 for _, pct in known])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where repeats differ so much that their mean says little."""
        found = []
        for group in self.groups:
            of = group.means["cpu_mean_pct"]
            values = [v for r in group.runs if (v := r.figures["cpu_mean_pct"]) is not None]
            if of and len(values) > 1 and max(values) - min(values) > SPREAD_PCT / 100 * of.mean:
                found.append(
                    f"{group.label} at {group.rate:,}/s: CPU of the repeats is"
                    f" {min(values):,.1f} to {max(values):,.1f} %, further apart than"
                    f" {SPREAD_PCT:.0f} % of their mean. Noisy machine? Repeat."
                )
        return tuple(found)


def tables(runs: Sequence[Run]) -> tuple[Table, ...]:
    """One table per runtime and machine, in the order of the runs."""
    places = dict.fromkeys(run.place for run in runs)
    return tuple(_table(place, [run for run in runs if run.place == place]) for place in places)


def _table(place: tuple[str, str], runs: Sequence[Run]) -> Table:
    counted = [run for run in runs if run.counts]
    labels, differences = _labels(counted)
    repeats: dict[tuple[str, int], list[Run]] = {}
    for run in counted:
        repeats.setdefault((labels[run.tag], run.rate), []).append(run)
    order = list(dict.fromkeys(labels.values()))
    groups = tuple(
        Group(label, rate, tuple(of), _means(of))
        for (label, rate), of in sorted(
            repeats.items(), key=lambda item: (item[0][1], order.index(item[0][0]))
        )
    )
    return Table(
        runtime=place[0],
        machine=place[1],
        groups=groups,
        comparisons=tuple(_comparisons(groups)),
        differences=differences,
        failed=tuple(run for run in runs if not run.counts),
    )


def _means(runs: Sequence[Run]) -> dict[str, Mean | None]:
    """A mean only where every repeat measured the figure: else it would be that of other runs."""
    found: dict[str, Mean | None] = {}
    for figure in FIGURES:
        values = [value for run in runs if (value := run.figures[figure.key]) is not None]
        found[figure.key] = mean(values) if len(values) == len(runs) else None
    return found


def _labels(runs: Sequence[Run]) -> tuple[dict[str, str], dict[str, str]]:
    """A label for each tag: the engine, and in what its runs differ; and that in full words."""
    labels: dict[str, str] = {}
    differences: dict[str, str] = {}
    for engine in dict.fromkeys(run.engine for run in runs):
        mine = [run for run in runs if run.engine == engine]
        variants: dict[str, str] = {}
        for run in mine:
            differ = _differing(run, mine)
            told = ", ".join(f"{key} {run.config.get(key, 'not recorded')}" for key in differ)
            short = f"{engine} [{told}]" if len(differ) <= SHORT_LABEL else f"{engine} #"
            if told not in variants:
                number = str(len(variants) + 1) if short.endswith("#") else ""
                variants[told] = short + number if differ else engine
            labels[run.tag] = variants[told]
            if differ:
                differences[variants[told]] = told
    return labels, differences


def _differing(run: Run, among: Sequence[Run]) -> list[str]:
    """Return in what a run and others of its engine are known to differ. Other windows matter only
    among repeats: rates may need other ones."""
    keys = sorted({key for other in among for key in other.config})
    found = []
    for key in keys:
        others = [o for o in among if key != WINDOW or o.rate == run.rate]
        if len({o.config[key] for o in others if key in o.config}) > 1:
            found.append(key)
    return found


def _comparisons(groups: Sequence[Group]) -> list[Comparison]:
    """Every other label against the first, at each rate that both ran at."""
    found = []
    for rate in dict.fromkeys(group.rate for group in groups):
        first, *others = [group for group in groups if group.rate == rate]
        for other in others:
            found += [_compare(key, other, first) for key in COMPARED]
    return found


def _compare(key: str, of: Group, to: Group) -> Comparison:
    for group in (of, to):
        for kind, count in group.verdicts:
            if kind in NOT_COMPARED:
                why = f"{group.label}: {kind} in {count} of {len(group.runs)}"
                return Comparison(of.rate, key, of.label, to.label, None, why)
    if of.means[key] is None or to.means[key] is None:
        return Comparison(of.rate, key, of.label, to.label, None, "not measured in every run")
    found = ratio(_values(of, key), _values(to, key))
    return Comparison(
        of.rate, key, of.label, to.label, found, "" if found else "a value is not above 0"
    )


def _values(group: Group, key: str) -> list[float]:
    return [value for run in group.runs if (value := run.figures[key]) is not None]
