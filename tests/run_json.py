"""The content of a `run.json` file, as people and their scripts read it."""

import json
from pathlib import Path
from typing import Any


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of `run.json`."""
    run: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return run
