"""`./race calibrate`: its exit codes, and its rows as flat records."""

import json
from pathlib import Path

import pytest

from racetrack.analysis.calibration import Finding
from racetrack.run import calibration
from tests.cli.conftest import MakesRuns, invoke

RIGHT = Finding("delay of 250 ms", "median lag 255 ms", "± 25 ms", within=True, what="lag")
WRONG = Finding("stall", "not detected", "2 s", within=False, what="stall")


def test_each_row_is_a_flat_record_and_a_wrong_one_fails(
    makes_runs: MakesRuns, tmp_path: Path
) -> None:
    """Runs that failed are rows that are not within their bounds."""
    table = tmp_path / "rows.md"
    makes_runs.outcome = "the engine ended"
    result = invoke(f"calibrate --json - --markdown {table}", make_runs=makes_runs)
    assert result.exit_code == 1, result.output
    exported = json.loads(result.stdout)
    assert exported["kind"] == "calibration"
    keys = ["what", "machine", "programmed", "measured", "bound", "within"]
    assert all(list(record) == keys for record in exported["records"])
    (plan,) = makes_runs.plans
    labels = {label for label, *_ in calibration.CHECKS}
    assert labels < set(plan.variants) and len(exported["records"]) == 16
    lines = table.read_text().splitlines()
    assert lines[0] == "| what | programmed | measured | bound | within |"
    assert all(line.endswith("| NO |") for line in lines[2:])


@pytest.mark.parametrize(("finding", "mark"), [(RIGHT, "yes"), (WRONG, "NO")])
def test_the_table_says_what_is_within_its_bound(finding: Finding, mark: str) -> None:
    (row,) = [line for line in calibration.table([finding]).splitlines() if "│" in line]
    assert mark in row and finding.measured in row
