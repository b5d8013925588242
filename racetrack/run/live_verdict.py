"""Verdict on an engine of a live session, as of now. It begins anew with each segment."""

from dataclasses import dataclass

from racetrack.analysis.recent import RecentCurves
from racetrack.analysis.verdict import judge, look, looks_ms
from racetrack.results.figures import Verdict, VerdictKind

# After the verdict is decided, the last part of the segment is judged again and again.
AGAIN_EVERY_MS, AGAIN_OVER_MS = 15_000, 60_000
FIRST_LOOK_MS = 10_000  # after the segment began
LATE_ROWS_MS = 1_000  # rows may be written this late
NONE = "none"


@dataclass(frozen=True)
class CurrentVerdict:
    """A verdict for people. `kind` is a `VerdictKind` or `none`."""

    kind: str
    text: str


class VerdictWatch:
    """Judges one engine at the times of the sequential test, and later every 15 s."""

    def __init__(self, engine: str, recent: RecentCurves) -> None:
        self._engine, self._recent = engine, recent
        self._from_ms, self._judged_ms = 0, 0.0
        self._requested_per_s: float | None = None
        self.now = CurrentVerdict(NONE, "There is no load yet.")

    def begin(self, from_ms: int, requested_per_s: float | None, why_not: str = "") -> None:
        """Begin a segment. Without a constant rate there is no verdict, but `why_not`."""
        self._from_ms, self._judged_ms, self._requested_per_s = from_ms, 0.0, requested_per_s
        if why_not or not requested_per_s:
            self.now = CurrentVerdict(NONE, why_not or "The rate is 0.")
        else:
            self.now = CurrentVerdict(str(VerdictKind.UNDECIDED), "The verdict began anew.")

    def update(self, now_ms: int) -> None:
        """Judge again, if it is time."""
        if self.now.kind == NONE:
            return
        at_ms = self._due_ms(now_ms - LATE_ROWS_MS)
        if at_ms is None or not (curves := self._recent.curves(self._engine)):
            return
        self._judged_ms = at_ms
        found: Verdict
        if self.now.kind == VerdictKind.UNDECIDED:
            found = look(curves, self._from_ms, at_ms, self._requested_per_s)
        else:
            from_ms = max(self._from_ms, at_ms - AGAIN_OVER_MS)
            found = judge(curves, from_ms, at_ms, self._requested_per_s)
            if found.kind is VerdictKind.UNDECIDED:
                return
        self.now = CurrentVerdict(str(found.kind), found.reason)

    def _due_ms(self, until_ms: float) -> float | None:
        """Return the time of the look that is due; None if there is none."""
        if self.now.kind != VerdictKind.UNDECIDED:
            return until_ms if until_ms - self._judged_ms >= AGAIN_EVERY_MS else None
        first_ms = self._from_ms + FIRST_LOOK_MS
        due = [at for at in looks_ms(self._from_ms, first_ms, until_ms) if at > self._judged_ms]
        return due[-1] if due else None
