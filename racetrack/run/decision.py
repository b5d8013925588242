"""After the sampling window: watch on, with the load still on, until the verdicts on the count and
on each view are decided."""

from collections.abc import Callable
from pathlib import Path

from racetrack.analysis import curves, views
from racetrack.analysis.verdict import decide, looks_ms
from racetrack.clock import now_ms
from racetrack.results.figures import VerdictKind
from racetrack.results.run import Window

# A look is taken when every row up to then is written, so that it says the same afterwards.
ROWS_WITHIN_MS = 1_000

Watch = Callable[[float, str], None]


def watch_until_decided(
    folder: Path,
    rate_set_ms: int,
    window: Window,
    asked_per_s: float,
    within_s: float,
    watch: Watch,
) -> int:
    """When it was last looked at, epoch milliseconds: the look that decided, or the last within
    `within_s` of the window's end. `watch` lets seconds pass and says what for."""
    first_ms = window.end_ms
    looks = looks_ms(rate_set_ms, first_ms, first_ms + 1000 * within_s)
    what = "looking whether it kept up"
    for at_ms in looks:
        if (left_s := (at_ms + ROWS_WITHIN_MS - now_ms()) / 1000) > 0:
            watch(left_s, what)
        told = curves.read(folder)
        found = decide(told, rate_set_ms, at_ms, asked_per_s, first_ms=first_ms)
        kinds = [found.kind]
        for _, view in views.traced_curves(folder, told.partitions):
            kinds.append(decide(view, rate_set_ms, at_ms, first_ms=first_ms).kind)
        if VerdictKind.UNDECIDED not in kinds or VerdictKind.FELL_BEHIND in kinds:
            break
        most_s = (looks[-1] - at_ms) / 1000
        what = f"undecided, watching on for {most_s:.0f} s at most; next look"
    return round(at_ms)
