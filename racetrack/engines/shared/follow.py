"""Reads a growing file line by line, as `tail -f` does."""

import threading
from collections.abc import Iterator
from pathlib import Path

LOOK_EVERY_S = 0.2


def follow(path: Path, stop: threading.Event) -> Iterator[str]:
    """Yield the lines of a file from its beginning, then new lines as they are written, until
    `stop` is set.

    Lines that exist when `stop` is set are still yielded, except a last line without a line end.
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
