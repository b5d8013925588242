"""End-to-end tests of the calibration: with the real broker and generator, the harness measures
what was programmed into the calibration engine."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from racetrack import terminal
from racetrack.analysis import calibration
from racetrack.engines import calibration_engine
from racetrack.machine_lock import machine_lock
from racetrack.results.defects import NO_PARTITION, VISIBLE_CYCLE_MS, InjectedDefect
from racetrack.run.calibration import CASES, Case, run_case
from racetrack.terminal import Screen
from tests.e2e.shared import skip_if_busy
from tests.run_json import read_run

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

STALLS = [case for case in CASES if case.defect.stalled_partition != NO_PARTITION]
SAWTEETH = [case for case in CASES if case.defect.cycle_ms >= VISIBLE_CYCLE_MS]
NOISY = [case for case in CASES if case.defect.capacity_noise_pct]
TRAILING = [case for case in CASES if case.defect.view_behind_ms]
COSTLY = [case for case in CASES if case.defect.cpu_us_per_pageview]
DELAYS = [
    case
    for case in CASES
    if case not in (*STALLS, *SAWTEETH, *TRAILING, *COSTLY) and not case.defect.capacity_per_s
]


@pytest.fixture
def guard() -> Iterator[terminal.Guard]:
    with machine_lock(), terminal.guarded(print) as guard:
        yield guard


def measured_as_programmed(
    case: Case, find: Callable[[Path, InjectedDefect], calibration.Finding], guard: terminal.Guard
) -> Path:
    """Run a case of the calibration; fail unless what was measured matches its defect. Return the
    run folder."""
    folder = run_case(case, Screen(Console()), guard)
    found = find(folder, case.defect)
    if not found.within:
        skip_if_busy(folder)
    assert found.within, found
    return folder


def test_there_is_something_to_measure() -> None:
    assert [case.defect.delay_ms for case in DELAYS] == [0, 250, 2_000]
    assert [case.defect.spread_ms for case in SAWTEETH] == [0, 15]
    assert len(STALLS) == len(NOISY) == len(TRAILING) == 1


@pytest.mark.parametrize("case", DELAYS, ids=str)
def test_a_programmed_delay_is_measured_as_lag(
    case: Case, guard: terminal.Guard, nothing_left: Callable[[], None]
) -> None:
    folder = measured_as_programmed(case, calibration.delay, guard)
    run = read_run(folder)
    for name, value in calibration_engine().settings_of(case.defect).items():
        assert str(run["settings"][name.lower()]) == value
    # The defect delays pageviews, but loses none.
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"] > 20_000
    nothing_left()


@pytest.mark.parametrize("case", SAWTEETH, ids=str)
def test_an_engine_that_reports_once_a_second_is_as_late_as_its_reader_sees(
    case: Case, guard: terminal.Guard, nothing_left: Callable[[], None]
) -> None:
    measured_as_programmed(case, calibration.sawtooth, guard)
    nothing_left()


@pytest.mark.parametrize("case", TRAILING, ids=str)
def test_a_view_that_trails_its_count_is_as_old_as_it_trails_and_its_answers_as_they_take(
    case: Case, guard: terminal.Guard, nothing_left: Callable[[], None]
) -> None:
    folder = measured_as_programmed(case, calibration.view, guard)
    nothing_left()
    answered = calibration.answer(folder, case.defect)
    if not answered.within:
        skip_if_busy(folder)
    assert answered.within, answered


@pytest.mark.parametrize("case", STALLS, ids=str)
def test_a_stalled_partition_is_seen_though_freshness_hides_it(
    case: Case, guard: terminal.Guard, nothing_left: Callable[[], None]
) -> None:
    folder = measured_as_programmed(case, calibration.stall, guard)
    assert read_run(folder)["measured"]["engine_drained"]
    nothing_left()


@pytest.mark.parametrize("case", NOISY, ids=str)
def test_an_overloaded_engine_is_seen_to_count_what_its_noisy_capacity_allows(
    case: Case, guard: terminal.Guard, nothing_left: Callable[[], None]
) -> None:
    folder = measured_as_programmed(case, calibration.work, guard)
    assert read_run(folder)["measured"]["engine_drained"]
    nothing_left()
