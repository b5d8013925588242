"""What searches for the limit of one engine would have found had the cores been equally fast for
all, in words: see `racetrack/analysis/like_speed.py`."""

from collections.abc import Iterator, Sequence

from racetrack.analysis.like_speed import MILLION, Likened, Observation, likened
from racetrack.limit_record import LimitRecord, Overloaded
from racetrack.report.limits import spread_in_words


def in_words(searches: Sequence[LimitRecord]) -> list[str]:
    """What moved the rate within a search, and what all would have found without; nothing if that
    can't be told."""
    found = _likened(searches)
    if not found:
        return []
    power, growth, capacity = found.power, found.growth, found.capacity
    growth_pct = round(100 * growth.value, 2) + 0.0  # no -0.00
    moved = (
        f"within a search its rate went as the cores' speed to the power {power.value:.2f}"
        f" ± {power.half:.2f}, and by {growth_pct:+.2f} ± {100 * growth.half:.2f} % with each"
        " million counted (95 %)"
    )
    at_fastest = (
        f"so on cores at their fastest, after {found.counted / MILLION:,.1f} million"
        f"{_standing_still(found)}: {spread_in_words(found.per_s)}; mean {capacity.per_s:,.0f}"
        f" ({capacity.low:,.0f} to {capacity.high:,.0f}, 95 %) {searches[0].of}/s"
    )
    return [moved, at_fastest]


def _standing_still(found: Likened) -> str:
    if found.running == 1:
        return ""
    return f", standing still to collect garbage for {100 * (1 - found.running):.0f} % of the time"


def _likened(searches: Sequence[LimitRecord]) -> Likened | None:
    windows = [(number, seen) for number, of in enumerate(searches) for seen in of.overloaded()]
    moments = [one for _, seen in windows for one in seen.moments]
    is_known = all(seen.moments for _, seen in windows)
    if not moments or not is_known or not all(one.core_mib_per_s for one in moments):
        return None
    # Where it is not known of all, it is left out of all.
    knows_pauses = all(one.paused_share is not None for one in moments)
    observed = [
        of for number, seen in windows for of in _observed(number, seen, knows_pauses=knows_pauses)
    ]
    return likened(observed, max(seen.core.fastest_mib_per_s for _, seen in windows if seen.core))


def _observed(search: int, seen: Overloaded, *, knows_pauses: bool) -> Iterator[Observation]:
    """Of a time with always more to do, in which the cores' speed is known."""
    counted = float(seen.counted_before)
    for one in seen.moments:
        half = one.per_s * (one.until_ms - one.from_ms) / 2000
        running = 1 - (one.paused_share or 0.0) if knows_pauses else 1.0
        yield Observation(search, one.per_s, one.core_mib_per_s or 0.0, counted + half, running)
        counted += 2 * half
