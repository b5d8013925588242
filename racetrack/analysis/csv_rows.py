"""CSV files of a run folder, which may still be written."""

import csv
from pathlib import Path


def whole_rows(path: Path) -> list[dict[str, str]]:
    """The rows by their titles, without a last line that is still being written; none where there
    is no such file."""
    text = path.read_text() if path.exists() else ""
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))
