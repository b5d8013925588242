"""For how long a JVM stood still to collect garbage, from what it logs with
`-Xlog:gc:stdout:timemillis,tags`.

What a window of two minutes holds of it is partly chance: a collection of the whole heap may take
ten seconds, once in some minutes.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

# A line for each pause, written at its end.
_PAUSE = re.compile(r"^\[(\d+)ms\](?:\[[^\]]*\])* GC\(\d+\) Pause .* (\d+\.\d+)ms$", re.MULTILINE)


def told(log: str) -> list[tuple[float, float]]:
    """When each pause began and ended, epoch milliseconds."""
    return [
        (float(until_ms) - float(took_ms), float(until_ms))
        for until_ms, took_ms in _PAUSE.findall(log)
    ]


def shares(logs: Iterable[Path], edges_ms: Sequence[float]) -> tuple[float, ...]:
    """The part of the time between each two edges in which a JVM stood still; of several, the one
    that did so most. Empty where none logged a pause."""
    of_each = [
        [_within(pauses, from_ms, until_ms) for from_ms, until_ms in itertools.pairwise(edges_ms)]
        for log in logs
        if (pauses := told(log.read_text(errors="replace")))
    ]
    return tuple(max(of_each, key=sum)) if of_each else ()


def _within(pauses: Sequence[tuple[float, float]], from_ms: float, until_ms: float) -> float:
    overlaps = (min(end, until_ms) - max(began, from_ms) for began, end in pauses)
    return sum(overlap for overlap in overlaps if overlap > 0) / (until_ms - from_ms)
