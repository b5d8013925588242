"""Creates the sides of a comparison from its measured windows ("pieces") or from recorded runs."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from racetrack.analysis.compare import Summary, summary
from racetrack.analysis.comparison import AT_RATES, BASE, CAPACITY, MEMORY, Side
from racetrack.analysis.conditions import Group
from racetrack.results.comparison import ComparisonRecord
from racetrack.results.figures import VerdictKind
from racetrack.results.repeats import Piece

# With these verdicts, the figures do not describe how the engine performs at the rate.
NOT_HELD = frozenset(
    {VerdictKind.FELL_BEHIND, VerdictKind.GENERATOR_BOUND, VerdictKind.BROKER_BOUND}
)
FEWEST_RATES = 2
Figures = dict[tuple[str, int | None], Summary]


def sides_of(record: ComparisonRecord) -> list[Side]:
    """Return a side for each engine, from its pieces with the outcome `ok`. Engines without figures
    are left out."""
    sides = [
        side_of(engine, [one for one in record.pieces if one.engine == engine], record.rates)
        for engine in record.engines
    ]
    return [side for side in sides if side.figures]


def side_of(label: str, pieces: Sequence[Piece], rates: Sequence[int]) -> Side:
    """Return a side from its pieces. Only those with the outcome `ok` count."""
    pieces = [one for one in pieces if one.outcome == "ok"]
    at_rates = [one for one in pieces if one.pageviews_per_s is not None]
    saturated = [one for one in pieces if one.pageviews_per_s is None]
    figures = _at_rates(at_rates)
    overall = {
        CAPACITY: [one.figures.get(CAPACITY.key) for one in saturated],
        MEMORY: [_memory_gib(of) for of in _whole_repeats(at_rates, rates)],
        BASE: [_base_pct(_cpu_by_rate(of)) for of in _whole_repeats(at_rates, rates)],
    }
    for metric, values in overall.items():
        if known := [value for value in values if value is not None]:
            figures[metric.key, None] = summary(known)
    not_sustained = {
        one.pageviews_per_s
        for one in at_rates
        if one.verdict in NOT_HELD and one.pageviews_per_s is not None
    }
    bounds = {CAPACITY.key} if any(one.is_lower_bound for one in saturated) else set()
    return Side(label, figures, frozenset(not_sustained), frozenset(bounds))


def _at_rates(pieces: Sequence[Piece]) -> Figures:
    values: dict[tuple[str, int | None], list[float]] = {}
    for piece in pieces:
        for metric in AT_RATES:
            if (value := piece.figures.get(metric.key)) is not None:
                values.setdefault((metric.key, piece.pageviews_per_s), []).append(value)
        if (memory_gib := _gib_of(piece.figures)) is not None:
            values.setdefault((MEMORY.key, piece.pageviews_per_s), []).append(memory_gib)
    return {key: summary(of) for key, of in values.items()}


def _whole_repeats(pieces: Sequence[Piece], rates: Sequence[int]) -> Iterable[list[Piece]]:
    """Yield the pieces of each run that contains all rates. Incomplete runs are left out, because
    memory grows with the number of events in a run."""
    for tag in dict.fromkeys(piece.tag for piece in pieces):
        mine = [piece for piece in pieces if piece.tag == tag]
        if {piece.pageviews_per_s for piece in mine} >= set(rates):
            yield mine


def _memory_gib(pieces: Sequence[Piece]) -> float | None:
    """Return the maximum memory of the pieces: PSS plus files on tmpfs, or resident memory if PSS
    is unknown."""
    known = [gib for piece in pieces if (gib := _gib_of(piece.figures)) is not None]
    return max(known, default=None)


def _gib_of(figures: Mapping[str, float | None]) -> float | None:
    pss_gib, tmpfs_gib = figures.get("pss_max_gib"), figures.get("tmpfs_max_gib")
    return figures.get("rss_max_gib") if pss_gib is None else pss_gib + (tmpfs_gib or 0.0)


def _cpu_by_rate(pieces: Sequence[Piece]) -> list[tuple[float, float]]:
    pairs = [
        (one.figures.get("processed_pageviews_per_s"), one.figures.get("cpu_mean_pct"))
        for one in pieces
        if one.verdict not in NOT_HELD
    ]
    return [(rate, pct) for rate, pct in pairs if rate is not None and pct is not None]


def _base_pct(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the CPU use extrapolated to rate 0, in percent of a core, from a least-squares line
    through the rates of a run. None with fewer than two rates, or if the result is not positive."""
    if len({round(rate, -1) for rate, _ in points}) < FEWEST_RATES:
        return None
    rates, used_pct = [rate for rate, _ in points], [pct for _, pct in points]
    _, intercept = np.polyfit(rates, used_pct, deg=1)
    return float(intercept) if intercept > 0 else None


def recorded_sides(groups: Mapping[tuple[str, int | str | None], Group], name: str) -> list[Side]:
    """Return a side for each engine of recorded runs. `name`, if not empty, becomes part of the
    labels, to distinguish sets of runs of the same engine. Runs with a load profile are left out,
    since they have no constant rate."""
    found = []
    rated = {
        (engine, offered): group
        for (engine, offered), group in groups.items()
        if not isinstance(offered, str)
    }
    for engine in dict.fromkeys(engine for engine, _ in rated):
        figures: Figures = {}
        not_sustained = set()
        for (of, rate), group in rated.items():
            if of != engine:
                continue
            figures |= {(key, rate): each for key, each in group.figures.items()}
            if (memory := _recorded_memory(group)) and (MEMORY.key, rate) not in figures:
                figures[MEMORY.key, rate] = memory
            if rate is not None and group.verdicts & NOT_HELD:
                not_sustained.add(rate)
        if (BASE.key, None) not in figures and (base := _recorded_base(figures)):
            figures[BASE.key, None] = base
        label = f"{engine} ({name})" if name else engine
        found.append(Side(label, figures, frozenset(not_sustained)))
    return found


def _recorded_memory(group: Group) -> Summary | None:
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
    found = [_base_pct(list(zip(map(float, used), pct, strict=True))) for pct in repeats]
    known = [pct for pct in found if pct is not None]
    return summary(known) if len(known) == len(found) else None
