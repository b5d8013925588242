"""End-to-end test of the capacity search, on an engine whose capacity is known."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from racetrack import terminal
from racetrack.config import load
from racetrack.engines import calibration_engine
from racetrack.machine_lock import machine_lock
from racetrack.results.defects import InjectedDefect
from racetrack.results.search import LimitRecord
from racetrack.run.capacity_search import CapacitySearch
from racetrack.run.trials import DURATIONS
from racetrack.terminal import Screen, patient_console
from tests.e2e.shared import skip_if_busy
from tests.some_engines import CALIBRATION

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

CAPACITY_PER_S = 8_000


# Times may be shorter than in other searches, because the calibration engine compiles nothing and
# has no noise.
QUICK = replace(
    DURATIONS,
    look_s=3,
    warm_up_most_s=8,
    warmth_bin_s=1,
    saturation_s=15,
    batch_s=5,
    settle_s=2,
    trial_s=15,
)


def test_a_programmed_capacity_is_found_and_nearly_all_of_it_is_sustained() -> None:
    settings = load(calibration_engine().settings_of(InjectedDefect(capacity_per_s=CAPACITY_PER_S)))
    with (
        tempfile.TemporaryFile("w") as unseen,
        terminal.guarded(print) as guard,
        machine_lock(),
    ):
        screen = Screen(patient_console(unseen))
        search = CapacitySearch(CALIBRATION, settings, screen, guard, QUICK, CAPACITY_PER_S // 2)
        found = search.run()
    rows = json.loads((Path(search.folder) / "limit.json").read_text())
    if not is_found(found):
        skip_if_busy(*(settings.logs_folder / run.tag for run in found.runs))
    assert found.outcome == "ok", rows
    assert is_found(found), rows
    overloaded = [seen for run in found.runs for seen in run.saturation]
    assert all(seen.idle_share == 0 and seen.backlog_min_s > 1 for seen in overloaded), rows
    assert all(seen.backlog_max_s < 45 for seen in overloaded), rows
    spent = [seen.cpu_s_per_million for seen in overloaded]
    assert all(each["loadgen"] > 0 and each["broker"] > 0 for each in spent), rows


def is_found(found: LimitRecord) -> bool:
    """Return whether the capacity is found within 3 %, and at least 0.87 of it is sustainable
    within both bounds of lag."""
    if not found.capacity:
        return False
    right = found.capacity.per_s == pytest.approx(CAPACITY_PER_S, rel=0.03)
    rows = [one.sustained_per_s or 0 for one in found.sustainable]
    return bool(right and min(rows) >= 0.87 * CAPACITY_PER_S and max(rows) <= CAPACITY_PER_S)
