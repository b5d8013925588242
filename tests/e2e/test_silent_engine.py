"""End-to-end tests of an engine without updates in the whole window: it fell behind if it counts
later, and the run fails if it never does."""

import csv
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.engines import calibration_engine
from racetrack.results.defects import InjectedDefect
from racetrack.run import session
from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run
from tests.some_engines import CALIBRATION

pytestmark = pytest.mark.e2e

Open = Callable[..., Door]
# The only partition stalls before the rate has settled, and until long after the window.
STALLED = InjectedDefect(stalled_partition=0, stall_after_s=4)


@pytest.fixture
def stall_for_s(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def stall(seconds: float) -> None:
        monkeypatch.setenv("EVENTS_PARTITIONS", "1")
        defect = replace(STALLED, stall_for_s=seconds)
        for name, value in calibration_engine().settings_of(defect).items():
            monkeypatch.setenv(name, value)

    return stall


def test_one_that_counts_on_later_fell_behind_and_that_is_a_result(
    door: Open, stall_for_s: Callable[[float], None], tmp_path: Path
) -> None:
    stall_for_s(25)
    run = door("run_experiment.sh", CALIBRATION, "1000", "5", "8", "1.0")
    assert run.wait() == 0, run.output
    folder = run_folder(run.output)
    record = read_run(folder)
    assert record["outcome"] == "ok"
    assert record["measured"]["engine_drained"]
    results, verdict = record["results"], record["results"]["verdict"]
    assert (verdict["kind"], verdict["updates"]) == ("fell behind", 0)
    assert verdict["next_update_s"] > 0
    assert results["dt_ms"]["p50"] is None
    (service,) = calibration_engine().services
    assert results["processes"][service]["cpu_s_per_million"] is None
    report = door("race", "report", str(folder), "--out", str(tmp_path / "report"))
    assert report.wait() == 0, report.output
    (row,) = csv.DictReader((tmp_path / "report" / "report.csv").read_text().splitlines())
    for absent in ("dt_p50_ms", "processed_events_per_s", "cpu_s_per_million"):
        assert row[absent] == "", absent
    stood_still = re.search(
        r"stalled timestamp=(\d+), partition=0", (folder / "stack" / f"{service}.log").read_text()
    )
    assert stood_still
    stood_still_ms = record["measured"]["window"]["end_ms"] - int(stood_still[1])
    assert stood_still_ms > 8_000  # the whole window
    # On a busy machine, the engine already lagged before it stopped.
    assert -250 <= float(row["lag_max_ms"]) - stood_still_ms < 2_000


def test_one_that_is_never_heard_of_again_may_have_counted_all(
    stall_for_s: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stall_for_s(0)
    # The backlog never drains, however long the run waits.
    monkeypatch.setattr(session, "DRAIN_WITHIN_S", 12.0)
    typed = f"run {CALIBRATION} --rate 1k --settle 5 --samples 10"
    run = CliRunner().invoke(cli.race, typed.split())
    assert run.exit_code == 1, run.output
    record = read_run(run_folder(run.output))
    assert "reported no update while it was measured, nor while" in record["outcome"]
    assert record["results"]["verdict"]["kind"] == "undecided"
    assert record["results"]["verdict"]["measured"] is None
