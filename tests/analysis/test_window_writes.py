"""Yahoo's published latency: what it says of engines that are late in a known way, and what it does
not say."""

from dataclasses import replace

import numpy as np
import pytest

from racetrack.analysis.lag import window_writes
from racetrack.results.figures import WindowWrites
from tests.analysis.synthetic import Race, curves

LENGTH_MS = 10_000
QUIET = Race(window_s=40, noise_ms=0, cycle_ms=100, recorded_after_ms=15_000)


def told(race: Race) -> WindowWrites:
    found = window_writes(curves(race, np.random.default_rng(1)), *race.window, LENGTH_MS)
    assert found
    return found


def test_an_engine_that_is_always_as_late_is_told_alike_by_both() -> None:
    found = told(QUIET)
    assert found.windows == 4
    assert found.after_end_p50_ms == pytest.approx(550, abs=60)
    assert found.lag_max_ms == pytest.approx(600, abs=20)


@pytest.mark.parametrize(("into_the_window_ms", "shows_ms"), [(1_000, 550), (6_000, 4_250)])
def test_what_a_stall_of_8_s_shows_is_where_it_falls_in_a_window(
    into_the_window_ms: int, shows_ms: int
) -> None:
    at_ms = 10_000.0 + into_the_window_ms
    stalled = replace(QUIET, pause_at_ms=at_ms, pause_ms=8_000.0, catch_up_factor=20.0)
    found = told(stalled)
    assert found.after_end_max_ms == pytest.approx(shows_ms, abs=300)
    assert found.lag_max_ms == pytest.approx(8_500, abs=300)


def test_a_window_that_was_never_written_to_its_end_is_without_end() -> None:
    silent = replace(QUIET, pause_at_ms=31_000.0, pause_ms=60_000.0)
    assert told(silent).after_end_max_ms == np.inf


def test_where_no_window_ends_nothing_is_said() -> None:
    made = curves(QUIET, np.random.default_rng(1))
    start_ms, _ = QUIET.window
    assert window_writes(made, start_ms, start_ms + 9_999, LENGTH_MS) is None
