"""Follows a growing file line by line, as `tail -f` does."""

import threading
from collections.abc import Iterator
from pathlib import Path

LOOK_EVERY_S = 0.2


def follow(path: Path, stop: threading.Event) -> Iterator[str]:
    """Whole lines of `path` from its beginning, as they come, until `stop` is set.

    What is already there when `stop` is set is still yielded. A last line without its end is not.
    """
    rest = ""
    with path.open(encoding="utf-8", errors="replace") as file:
        while True:
            last_look = stop.is_set()
            *lines, rest = (rest + file.read()).split("\n")
            yield from lines
            if last_look:
                return
            stop.wait(LOOK_EVERY_S)
