"""Schedules of events: the number due by a time, and the due time of event i.

A schedule is independent of how many events were sent, which makes the load an open loop. It uses
integers only, so results are exact however long it runs and however often the rate changes."""

from __future__ import annotations

from collections.abc import Sequence

# (start_ns, whole, part, numerator): from start_ns on, `whole + (part + elapsed_ns * numerator) /
# denominator` events are due.
Segment = tuple[int, int, int, int]


class Schedule:
    """A piecewise linear count of due events over time (any integer nanosecond clock).

    A rate is `numerator / denominator` events per nanosecond. Numbers are 1-based: number i is due
    at the first nanosecond t for which due_by(t) >= i.
    """

    def __init__(self, denominator: int, segments: Sequence[Segment]) -> None:
        if denominator < 1 or not segments:
            raise ValueError("a schedule needs a positive denominator and at least one segment")
        self.denominator = denominator
        self.segments: list[Segment] = list(segments)

    @classmethod
    def starting(cls, start_ns: int, numerator: int, denominator: int, part: int = 0) -> Schedule:
        """Return a schedule with nothing due until `start_ns`, then one rate.

        `part` (0 <= part < denominator) shifts the phase of the first event."""
        return cls(denominator, [(start_ns, 0, part, numerator)])

    def due_by(self, t_ns: int) -> int:
        """Return the number of events due at `t_ns` or before."""
        for start_ns, whole, part, numerator in reversed(self.segments):
            if t_ns >= start_ns:
                return whole + (part + (t_ns - start_ns) * numerator) // self.denominator
        return self.segments[0][1]

    def when(self, number: int) -> int | None:
        """Return the nanosecond at which event `number` is due, or None if it is never due at the
        current rate.

        For an event that `forget` has dropped, return the start of the remaining schedule."""
        for start_ns, whole, part, numerator in reversed(self.segments):
            if number > whole:
                if numerator == 0:
                    return None
                missing = (number - whole) * self.denominator - part
                return start_ns + -(-missing // numerator)
        return self.segments[0][0]

    def numerator_of(self, number: int) -> int:
        """Return the numerator of the rate at which event `number` is due."""
        for _, whole, _, numerator in reversed(self.segments):
            if number > whole:
                return numerator
        return self.segments[0][3]

    def due_at(self, number: int) -> int:
        """Return `when(number)`; raise ValueError if the event is never due."""
        at_ns = self.when(number)
        if at_ns is None:
            raise ValueError(f"event {number} is never due at the rates so far")
        return at_ns

    def change(self, at_ns: int, numerator: int) -> None:
        """Change the rate from `at_ns` on.

        Events due before `at_ns` stay due, and the fraction of the next event is kept. `at_ns` must
        not precede an earlier change."""
        start_ns, whole, part, old = self.segments[-1]
        if at_ns < start_ns:
            raise ValueError("a change of rate can't come before an earlier one")
        total = part + (at_ns - start_ns) * old
        segment = (at_ns, whole + total // self.denominator, total % self.denominator, numerator)
        if at_ns == start_ns:
            self.segments[-1] = segment
        else:
            self.segments.append(segment)

    def forget(self, number: int) -> None:
        """Drop segments needed only for events up to `number`, so that a long run with many changes
        stays small."""
        while len(self.segments) > 1 and self.segments[1][1] <= number:
            del self.segments[0]
