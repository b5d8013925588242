"""`./race calibrate`: every case is run, and one row that is off fails it."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.analysis.calibration import Finding
from racetrack.run import calibration
from racetrack.run.calibration import CASES

GOOD = Finding("delay of 0 ms", "median lag 6 ms", "± 25 ms", within=True)
BAD = Finding("delay of 250 ms", "the [broker] ended", "± 25 ms", within=False)


@pytest.mark.parametrize(("found", "code"), [([GOOD, GOOD], 0), ([GOOD, BAD], 1)])
def test_it_succeeds_only_if_every_row_is_within_its_bound(
    monkeypatch: pytest.MonkeyPatch, found: list[Finding], code: int
) -> None:
    ran: list[calibration.Case] = []

    def run_case(case: calibration.Case, *_: object) -> Path:
        ran.append(case)
        return Path("/nowhere")

    def findings(folders: Sequence[Path]) -> list[Finding]:
        assert len(folders) == len(CASES)
        return found

    monkeypatch.setattr(calibration, "run_case", run_case)
    monkeypatch.setattr(calibration, "findings", findings)
    monkeypatch.setattr(calibration, "noisy", lambda *_: GOOD)
    monkeypatch.setattr(calibration, "prepare", lambda _screen: None)
    result = CliRunner().invoke(cli.race, ["calibrate"])
    assert result.exit_code == code, result.output
    assert tuple(ran) == CASES
    assert ("are not accurate" in result.output) == bool(code)
