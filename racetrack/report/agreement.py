"""Agreement of repeated capacity searches, as text for the terminal and the page."""

from collections.abc import Iterable, Mapping, Sequence

from racetrack.analysis import compare
from racetrack.report.collect import place_of, settings_of
from racetrack.report.limits import describe_spread
from racetrack.results.base import Scalar
from racetrack.results.search import LimitRecord

GENERATOR = "loadgen"  # as a service
Settings = frozenset[tuple[str, Scalar]]


def describe(found: Iterable[LimitRecord]) -> list[str]:
    """Return lines for each engine searched more than once on one machine with the same settings.
    Void searches and searches with a failed run are left out."""
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
    return any(seen.void for seen in one.last_saturation())


def _label(engine: str, settings: Settings, others: Mapping[Settings, object]) -> str:
    """Name the engine, and the settings by which these searches differ from others of it."""
    own = sorted(settings - frozenset.intersection(*others))
    differs = ", ".join(f"{name.upper()}={value}" for name, value in own)
    return f"{engine} ({differs})" if differs else engine


def _lines(label: str, searches: Sequence[LimitRecord]) -> list[str]:
    works = [one.capacity.per_s for one in searches if one.capacity]
    mean = compare.mean(works)
    half = mean.half or 0.0  # of two searches or more, there is one
    capacity = f"capacity {describe_spread(works)}; mean {mean.mean:,.0f} ± {half:,.0f} (95 %)"
    lines = [f"{label}: {len(searches)} searches: {capacity} {searches[0].of}/s"]
    if speed := _machine(searches):
        lines.append(f"{label}: speed of the machine: {speed}")
    for bound_ms in sorted({one.bound_ms for search in searches for one in search.sustainable}):
        held = [
            one.held_per_s
            for search in searches
            for one in search.sustainable
            if one.bound_ms == bound_ms and one.held_per_s
        ]
        within = f"lag p99 within {bound_ms / 1000:g} s"
        if len(held) == len(searches):
            lines.append(f"{label}: {within} at {describe_spread(held)}")
        elif held:
            lines.append(
                f"{label}: {within} at any rate in {len(held)} of {len(searches)} searches"
            )
    return lines


def _machine(searches: Sequence[LimitRecord]) -> str:
    """Describe the speed of the machine: by its cores, and by the generator's CPU time per event,
    which is the same work in all searches."""
    runs = [seen for one in searches for seen in one.last_saturation()]
    cores = [of.core for of in runs if of.core]
    spent_s = [of.cpu_s_per_million.get(GENERATOR, 0.0) for of in runs]
    told = []
    if cores and len(cores) == len(runs):
        # One reference for all: a run on shared cores has a slower fastest second of its own.
        fastest = max(of.fastest_mib_per_s for of in cores)
        pct = [100 * of.mib_per_s / fastest for of in cores]
        told.append(f"cores at {min(pct):.0f} to {max(pct):.0f} % of the fastest second of all")
    if spent_s and all(spent_s):
        told.append(f"generator {min(spent_s):.2f} to {max(spent_s):.2f} CPU-s per million")
    return ", ".join(told)
