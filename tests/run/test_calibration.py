"""`./race calibrate`: every case is run, each flaw alone, and one row that is off fails it."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.analysis.ruler import Finding
from racetrack.flaw import NO_PARTITION
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

    monkeypatch.setattr(cli.calibrate, "machine_lock", nullcontext)  # a run may hold the real one
    monkeypatch.setattr(calibration, "run_case", run_case)
    monkeypatch.setattr(calibration, "findings", findings)
    monkeypatch.setattr(calibration, "prepare", lambda _screen: None)
    result = CliRunner().invoke(cli.race, ["calibrate"])
    assert result.exit_code == code, result.output
    assert tuple(ran) == CASES
    assert ("The ruler is off" in result.output) == bool(code)


def test_the_table_shows_every_row_as_it_is() -> None:
    lines = calibration.table([GOOD, BAD]).splitlines()
    good = next(line for line in lines if "delay of 0 ms" in line)
    bad = next(line for line in lines if "delay of 250 ms" in line)
    assert "median lag 6 ms" in good
    assert good.split("│")[-2].strip() == "yes"
    assert "the [broker] ended" in bad
    assert bad.split("│")[-2].strip() == "NO"


def test_the_whole_of_it_takes_less_than_four_minutes() -> None:
    assert sum(case.takes_s for case in CASES) < 240


def test_the_stall_outlasts_the_samples_and_can_still_be_drained() -> None:
    stall = next(case for case in CASES if case.flaw.stalled_partition != NO_PARTITION)
    begins_s = stall.flaw.stall_after_s
    ends_s = begins_s + stall.flaw.stall_for_s
    sampled_until_s = stall.wait_s + stall.samples
    assert begins_s < stall.wait_s
    assert sampled_until_s + 5 < ends_s < sampled_until_s + 20
