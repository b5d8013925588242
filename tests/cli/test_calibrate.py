"""`./race calibrate`: its exit codes, and its rows as flat records."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from racetrack.analysis.calibration import Finding
from tests.cli.conftest import invoke

RIGHT = Finding("delay of 250 ms", "median lag 255 ms", "± 25 ms", within=True, what="lag")
WRONG = Finding("stall", "not detected", "2 s", within=False, what="stall")


@pytest.mark.parametrize(("found", "code"), [([RIGHT], 0), ([RIGHT, WRONG], 1)])
def test_each_row_is_a_flat_record(found: Sequence[Finding], code: int, tmp_path: Path) -> None:
    table = tmp_path / "rows.md"
    result = invoke(f"calibrate --json - --markdown {table}", measure=lambda *_: found)
    assert result.exit_code == code, result.output
    exported = json.loads(result.stdout)
    assert exported["kind"] == "calibration"
    assert all(record.pop("machine") for record in exported["records"])
    keys = "what", "programmed", "measured", "bound", "within"
    rows = [(of.what, of.programmed, of.measured, of.bound, of.within) for of in found]
    assert exported["records"] == [dict(zip(keys, row, strict=True)) for row in rows]
    lines = table.read_text().splitlines()
    assert lines[0] == "| what | programmed | measured | bound | within |"
    assert lines[2] == "| lag | delay of 250 ms | median lag 255 ms | ± 25 ms | yes |"
    assert [line.endswith("| NO |") for line in lines[2:]] == [not of.within for of in found]
