"""The end of a service's output, as it stands below an error."""

from pathlib import Path

LINES = 12


def last_words(log: Path) -> str:
    """The last lines of a log, indented."""
    lines = log.read_text(errors="replace").splitlines()[-LINES:]
    return "\n".join(f"    {line}" for line in lines) or "    (it said nothing)"
