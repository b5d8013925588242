"""Atomic writes of JSON and text files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a mapping as JSON, atomically."""
    write_whole(path, json.dumps(value, indent=2))


def write_whole(path: Path, text: str) -> None:
    """Write a text file, atomically: readers see the old or the new content."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text + "\n")
    unfinished.replace(path)
