"""End-to-end test that a search raises the rate of inserts through CDC to an engine's view."""

import tempfile
from dataclasses import replace

import pytest

from racetrack import terminal
from racetrack.config import load
from racetrack.machine_lock import machine_lock
from racetrack.run.capacity_search import CapacitySearch
from racetrack.run.trials import DURATIONS
from racetrack.terminal import Screen, patient_console
from racetrack.workloads.contract import find_workload
from tests.some_engines import EXAMPLE

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

# Times may be short, because the capacity itself is not tested here.
QUICK = replace(
    DURATIONS,
    look_s=3,
    warm_up_most_s=10,
    warmth_bin_s=2,
    saturation_s=12,
    batch_s=6,
    settle_s=2,
    trial_s=6,
)
AGES_AGO_MS = 60_000.0


def test_inserts_are_raised_until_they_wait_and_worked_off_again() -> None:
    settings = load()
    raised = find_workload(settings.workload).watched_kinds[0]
    with (
        tempfile.TemporaryFile("w") as unseen,
        terminal.guarded(print) as guard,
        machine_lock(),
    ):
        screen = Screen(patient_console(unseen))
        given = (EXAMPLE, settings, screen, guard, QUICK, 200, raised)
        search = CapacitySearch(*given, why_void=lambda *_: None)
        with search.fresh() as run:
            worked = run.work()
            rows = run.try_rate(round(0.2 * worked.per_s), AGES_AGO_MS)
    found = search.record
    (overloaded,) = found.runs[0].saturation
    assert worked.per_s > 200
    assert worked.is_capacity
    assert 1 < worked.backlog_min_s < worked.backlog_max_s
    assert sum(overloaded.backlog_by_stage.values()) == pytest.approx(1)
    assert overloaded.handed_over_per_s > 0.3 * worked.per_s
    assert rows.is_offered
    assert rows.lag_p99_ms < AGES_AGO_MS
    assert found.runs[0].trials[0].counted_before > overloaded.counted_before > 0
