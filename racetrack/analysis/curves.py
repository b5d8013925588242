"""`curves.csv` of a run folder, read into frozen arrays: the only I/O of lag and verdict."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from racetrack.errors import RacetrackError

FILE = "curves.csv"
HEADER = ["at_ms", "curve", "partition", "count"]
SAMPLED = ("due", "handed_over", "published")
NAMES = (*SAMPLED, "processed")


class CurvesError(RacetrackError):
    """`curves.csv` is not what this version can read."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Cumulative pageviews of one partition, rows in the order in which they were written.

    `at_ms` are epoch milliseconds, `count` pageviews since the topic was made; same length.
    """

    at_ms: NDArray[np.float64]
    count: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curves:
    """The four curves; each has one `Curve` a partition, in the order of `partitions`.

    A `processed` curve is empty where the engine has counted nothing; the others never are.
    """

    partitions: tuple[int, ...]
    due: tuple[Curve, ...]
    handed_over: tuple[Curve, ...]
    published: tuple[Curve, ...]
    processed: tuple[Curve, ...]


def read(folder: Path) -> Curves:
    """The curves of a run folder.

    A last line without its end (the run was killed) is left out.

    Raises:
        CurvesError: there is no such file, a line can't be read, or a curve is missing.
    """
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CurvesError(
            f"{path} is not there: this run recorded no curves. Run it anew."
        ) from error
    return _assemble(path, _rows(path, text[: text.rfind("\n") + 1]))


def _rows(path: Path, text: str) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """The rows (at_ms, count) of each curve and partition."""
    lines = csv.reader(text.splitlines())
    if next(lines, None) != HEADER:
        raise CurvesError(f"{path} does not begin with {','.join(HEADER)!r}: not a file of curves.")
    found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for line in lines:
        try:
            at_ms, name, partition, count = line
            found[name, int(partition)].append((int(at_ms), int(count)))
        except ValueError as error:
            raise CurvesError(
                f"{path}, line {lines.line_num}: {','.join(line)!r} is not"
                f" {','.join(HEADER)}. Take the file from the run anew."
            ) from error
    return found


def _assemble(path: Path, rows: dict[tuple[str, int], list[tuple[int, int]]]) -> Curves:
    strange = sorted({name for name, _ in rows} - set(NAMES))
    if strange:
        raise CurvesError(f"{path} has curves that this version does not know: {strange}.")
    partitions = tuple(sorted({partition for _, partition in rows}))
    missing = [f"{name}/{p}" for name in SAMPLED for p in partitions if (name, p) not in rows]
    if missing or not partitions:
        raise CurvesError(
            f"{path} lacks {', '.join(missing) or 'any row'}: lag needs what was due, handed over"
            " and published for every partition. The run broke off too early; run it anew."
        )

    def curve(name: str, partition: int) -> Curve:
        table = np.array(rows.get((name, partition), []), dtype=np.float64).reshape(-1, 2)
        return Curve(table[:, 0], table[:, 1])

    return Curves(partitions, *(tuple(curve(name, p) for p in partitions) for name in NAMES))
