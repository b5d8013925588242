"""End-to-end test of the calibration: with the real broker and generator, the harness measures what
was programmed into the calibration engine."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shared import NothingLeft, Open, skip_if_busy

pytestmark = pytest.mark.alone


def test_what_was_programmed_is_measured_after_an_interruption(
    door: Open, nothing_left: NothingLeft, tmp_path: Path
) -> None:
    first = door("race", "calibrate")
    first.until("== run 3 of 18")
    resume = first.interrupted()
    nothing_left()
    file = tmp_path / "calibration.json"
    second = door("race", *resume, "--json", str(file))
    code = second.wait(1_500)
    nothing_left()
    records: list[dict[str, Any]] = json.loads(file.read_text())["records"]
    assert len(records) == 16
    if wrong := [record for record in records if not record["within"]]:
        folders = re.findall(r"; (\S+_UTC_cal_\d+)$", second.output, re.MULTILINE)
        skip_if_busy(*map(Path, folders))
        pytest.fail(f"{wrong}\n{second.output}")
    assert code == 0, second.output
