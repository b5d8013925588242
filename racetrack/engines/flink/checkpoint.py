"""The last checkpoint of Flink's job, by its log: what a killed Flink goes on from."""

import re
from pathlib import Path

_COMPLETED = re.compile(r"Completed checkpoint (\d+) for job (\w+) ")


def last(log: Path, folder: str) -> str | None:
    """Where Flink keeps it below `folder`, its `execution.checkpointing.dir`; None if none was
    completed."""
    found = _COMPLETED.findall(log.read_text(errors="replace"))
    return f"{folder.rstrip('/')}/{found[-1][1]}/chk-{found[-1][0]}" if found else None
