"""Finds the last checkpoint of Flink's job in its log. A killed Flink can resume from it."""

import re
from pathlib import Path

_COMPLETED = re.compile(r"Completed checkpoint (\d+) for job (\w+) ")


def last(log: Path, folder: str) -> str | None:
    """Return the path of the last completed checkpoint; None if there is none. `folder` is Flink's
    setting `execution.checkpointing.dir`."""
    found = _COMPLETED.findall(log.read_text(errors="replace"))
    return f"{folder.rstrip('/')}/{found[-1][1]}/chk-{found[-1][0]}" if found else None
