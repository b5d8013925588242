"""How far searches for the limit of one engine agree, in words: on the terminal and on the page."""

from collections.abc import Iterable, Mapping, Sequence

from racetrack.analysis import compare
from racetrack.limit_record import LimitRecord
from racetrack.record_part import Scalar
from racetrack.report import like_speed
from racetrack.report.collect import place_of, settings_of
from racetrack.report.limits import spread_in_words

GENERATOR = "loadgen"  # as a service
Settings = frozenset[tuple[str, Scalar]]


def in_words(found: Iterable[LimitRecord]) -> list[str]:
    """A line or more for each engine that was searched more than once, in one place and with the
    same settings. A search that others disturbed to its end does not count, nor does one of which
    a run failed."""
    alike: dict[tuple[str, ...], dict[Settings, list[LimitRecord]]] = {}
    for one in found:
        if one.is_capacity_of_all_runs and not _is_void(one):
            by_settings = alike.setdefault((one.engine, one.of, *place_of(one)), {})
            by_settings.setdefault(frozenset(settings_of(one).items()), []).append(one)
    return [
        line
        for by_settings in alike.values()
        for settings, searches in by_settings.items()
        if len(searches) > 1
        for line in _lines(_label(searches[0].engine, settings, by_settings), searches)
    ]


def _is_void(one: LimitRecord) -> bool:
    return any(seen.void for seen in one.overloaded())


def _label(engine: str, settings: Settings, others: Mapping[Settings, object]) -> str:
    """The engine, and what tells these searches from others of it."""
    own = sorted(settings - frozenset.intersection(*others))
    differs = ", ".join(f"{name.upper()}={value}" for name, value in own)
    return f"{engine} ({differs})" if differs else engine


def _lines(label: str, searches: Sequence[LimitRecord]) -> list[str]:
    works = [one.capacity.per_s for one in searches if one.capacity]
    mean = compare.mean(works)
    half = mean.half or 0.0  # of two searches or more, there is one
    capacity = f"capacity {spread_in_words(works)}; mean {mean.mean:,.0f} ± {half:,.0f} (95 %)"
    lines = [f"{label}: {len(searches)} searches: {capacity} {searches[0].of}/s"]
    if speed := _machine(searches):
        lines.append(f"{label}: how fast the machine was meanwhile: {speed}")
    lines += [f"{label}: {line}" for line in like_speed.in_words(searches)]
    for bound_ms in sorted({one.bound_ms for search in searches for one in search.sustainable}):
        held = [
            one.held_per_s
            for search in searches
            for one in search.sustainable
            if one.bound_ms == bound_ms and one.held_per_s
        ]
        within = f"lag p99 within {bound_ms / 1000:g} s"
        if len(held) == len(searches):
            lines.append(f"{label}: {within} at {spread_in_words(held)}")
        elif held:
            lines.append(f"{label}: {within} at a rate in {len(held)} of {len(searches)} searches")
    return lines


def _machine(searches: Sequence[LimitRecord]) -> str:
    """What tells whether the machine did as much for each. The generator does the same work for an
    event in all of them, at about the same rates."""
    runs = [seen for one in searches for seen in one.overloaded()]
    cores = [of.core for of in runs if of.core]
    spent_s = [of.cpu_s_per_million.get(GENERATOR, 0.0) for of in runs]
    told = []
    if cores and len(cores) == len(runs):
        # Of all of them: a run that never had its cores for itself has a slower fastest second.
        fastest = max(of.fastest_mib_per_s for of in cores)
        pct = [100 * of.mib_per_s / fastest for of in cores]
        told.append(f"a core at {min(pct):.0f} to {max(pct):.0f} % of the fastest second of all")
    if spent_s and all(spent_s):
        told.append(
            f"the generator took {min(spent_s):.2f} to {max(spent_s):.2f} CPU-s per million"
        )
    return ", ".join(told)
