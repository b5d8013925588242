"""`curves.csv`: what was due, handed over, published and processed of each partition, and when."""

import threading
from collections.abc import Iterable

from racetrack.results.folder import RunFolder

HEADER = "at_ms,curve,partition,count\n"


class CurvesFile:
    """Rows `at_ms,curve,partition,count`: epoch milliseconds, one of `due`, `handed_over`,
    `published`, `processed`, and a count since the topic was made. Any thread may write."""

    def __init__(self, folder: RunFolder) -> None:
        self._lock = threading.Lock()
        self._csv = folder.open_for_lines("curves.csv")
        self._csv.write(HEADER)

    def write(self, at_ms: int, curve: str, counts: Iterable[tuple[int, int]]) -> None:
        """One row for each (partition, count)."""
        rows = "".join(f"{at_ms},{curve},{partition},{count}\n" for partition, count in counts)
        with self._lock:
            self._csv.write(rows)

    def close(self) -> None:
        """Nothing may be written after this."""
        self._csv.close()
