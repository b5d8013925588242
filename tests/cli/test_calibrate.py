"""`./race calibrate`: its exit codes, and its rows as flat records."""

import json
from pathlib import Path

import pytest

from racetrack.run import calibration
from tests.cli.conftest import MakesRuns, invoke


@pytest.mark.slow
def test_each_row_is_a_flat_record_and_a_wrong_one_fails(
    makes_runs: MakesRuns, tmp_path: Path
) -> None:
    """Runs that failed are rows that are not within their bounds."""
    makes_runs.outcome = "the engine ended"
    result = invoke(f"calibrate --json - --markdown {tmp_path / 'rows.md'}", make_runs=makes_runs)
    assert result.exit_code == 1, result.output
    exported = json.loads(result.stdout)
    assert exported["kind"] == "calibration"
    keys = ["what", "machine", "programmed", "measured", "bound", "within"]
    assert all(list(record) == keys for record in exported["records"])
    (plan,) = makes_runs.plans
    labels = {label for label, *_ in calibration.CHECKS}
    assert labels < set(plan.variants) and len(exported["records"]) == 17
    lines = (tmp_path / "rows.md").read_text().splitlines()
    assert all(line.endswith("| NO |") for line in lines[2:])
