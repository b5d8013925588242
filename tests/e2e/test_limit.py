"""The search for the limit, on an engine whose limit is known, with real broker and generator."""

import json
import re
import tempfile
from pathlib import Path

import pytest

from engines import calibration_engine
from racetrack import interrupts
from racetrack.flaw import Flaw
from racetrack.limit_record import LimitRecord
from racetrack.machine_lock import machine_lock
from racetrack.run import limit
from racetrack.screen import Screen, patient_console
from racetrack.settings import load
from tests.e2e.shared import skip_if_busy
from tests.some_engines import CALIBRATION

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

CAPACITY_PER_S = 8_000


def test_a_programmed_capacity_is_found_as_the_limit() -> None:
    settings = load(calibration_engine().settings_of(Flaw(capacity_per_s=CAPACITY_PER_S)))
    with (
        tempfile.TemporaryFile("w") as unseen,
        interrupts.guarded(print) as guard,
        machine_lock(),
    ):
        screen = Screen(patient_console(unseen))
        search = limit.LimitSearch(CALIBRATION, settings, screen, guard, limit.QUICK)
        found = search.run(start=6_000)
    held = json.loads((Path(search.folder) / "limit.json").read_text())
    if not is_within(found):
        skip_if_busy(*(settings.logs_folder / run["tag"] for run in held["confirm"]))
    assert held["outcome"] == found.outcome == "ok", held
    assert is_within(found), held
    assert [run["verdict"] for run in held["confirm"]].count("kept up") >= 3
    assert held["warm_up_s"] == limit.QUICK.warm_up_s
    for run in held["confirm"]:
        assert rates_set(run["tag"])[:2] == [run["pageviews_per_s"] // 2, run["pageviews_per_s"]]
    assert limit.in_words(found).startswith(f"{CALIBRATION} keeps up with ")


def is_within(found: LimitRecord) -> bool:
    """Whether the limit was found as near as it says: 5 %."""
    low, high = found.keeps_up_with_pageviews_per_s, found.falls_behind_at_pageviews_per_s
    if low is None or high is None:
        return False
    right = low == pytest.approx(CAPACITY_PER_S, rel=0.05)
    return bool(right and CAPACITY_PER_S * 0.99 <= high <= low * 1.05 + 1)


def rates_set(tag: str) -> list[int]:
    """The rates that a run asked of the generator, one after the other."""
    said = (load().logs_folder / tag / "start.log").read_text()
    return [int(rate) for rate in re.findall(r"> set pageviews_per_second (\d+)", said)]
