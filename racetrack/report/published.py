"""The results published in 2022, as data: beside one's own, never among them."""

import json
from importlib.resources import files
from typing import Any


def published() -> dict[str, Any]:
    """`published_2022.json`: where it stands, notes, and results with units in their names."""
    text = files("racetrack.report").joinpath("published_2022.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
