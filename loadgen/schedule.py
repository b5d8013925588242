"""When things are due: a value with two questions, how many are due by a time and when is number i
due.

Nothing in here knows how far anybody has come. That is what makes the load an open loop: being late
changes no answer. All arithmetic is on whole numbers, so the answers are exact however long it runs
and however often the rate changes.
"""

from __future__ import annotations

from collections.abc import Sequence

# (start_ns, whole, part, numerator): from start_ns on, `whole + (part + elapsed_ns * numerator) /
# denominator` are due.
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
        """Nothing due until `start_ns`, then one rate.

        `part` (0 <= part < denominator) shifts the phase of the first event.
        """
        return cls(denominator, [(start_ns, 0, part, numerator)])

    def due_by(self, t_ns: int) -> int:
        """How many events are due at `t_ns` or before."""
        for start_ns, whole, part, numerator in reversed(self.segments):
            if t_ns >= start_ns:
                return whole + (part + (t_ns - start_ns) * numerator) // self.denominator
        return self.segments[0][1]

    def when(self, number: int) -> int | None:
        """The nanosecond at which event `number` is due, or None if, as rates stand, it never will
        be.

        For events older than what `forget` was told the answer is the start of what is remembered.
        """
        for start_ns, whole, part, numerator in reversed(self.segments):
            if number > whole:
                if numerator == 0:
                    return None
                missing = (number - whole) * self.denominator - part
                return start_ns + -(-missing // numerator)
        return self.segments[0][0]

    def due_at(self, number: int) -> int:
        """Like `when`, for an event of which it is known that it will be due. ValueError if not."""
        at_ns = self.when(number)
        if at_ns is None:
            raise ValueError(f"event {number} is never due at the rates so far")
        return at_ns

    def change(self, at_ns: int, numerator: int) -> None:
        """From `at_ns` on another rate.

        What was due before stays due, to the fraction. Not before an earlier change.
        """
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
        """Drop what is only needed for events up to `number`, so that a long run with many changes
        stays small.
        """
        while len(self.segments) > 1 and self.segments[1][1] <= number:
            del self.segments[0]
