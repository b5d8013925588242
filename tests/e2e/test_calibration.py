"""The harness measures a known thing with the real broker and generator: what was programmed into
the calibration engine is what comes out."""

from collections.abc import Callable, Iterator

import pytest
from rich.console import Console

from racetrack import interrupts
from racetrack.analysis import ruler
from racetrack.machine_lock import machine_lock
from racetrack.run.calibration import CASES, Case, run_case
from racetrack.screen import Screen
from tests.e2e.conftest import skip_if_busy
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

DELAYS = [case for case in CASES if "CAL_DELAY_MS" in case.flaw]
STALLS = [case for case in CASES if "CAL_STALLED_PARTITION" in case.flaw]


@pytest.fixture
def guard() -> Iterator[interrupts.Guard]:
    with machine_lock(), interrupts.guarded(print) as guard:
        yield guard


def test_there_is_something_to_measure() -> None:
    assert [case.flaw["CAL_DELAY_MS"] for case in DELAYS] == ["0", "250", "2000"]
    assert len(STALLS) == 1


@pytest.mark.parametrize("case", DELAYS, ids=str)
def test_a_programmed_delay_is_measured_as_lag(
    case: Case, guard: interrupts.Guard, nothing_left: Callable[[], None]
) -> None:
    folder = run_case(case, Screen(Console()), guard)
    found = ruler.delay(folder)
    if not found.within:
        skip_if_busy(folder)
    assert found.within, found
    run = read_run(folder)
    assert run["settings"]["cal_delay_ms"] == int(case.flaw["CAL_DELAY_MS"])
    # It is a delay, not a loss.
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"] > 20_000
    nothing_left()


@pytest.mark.parametrize("case", STALLS, ids=str)
def test_a_stalled_partition_is_seen_though_freshness_hides_it(
    case: Case, guard: interrupts.Guard, nothing_left: Callable[[], None]
) -> None:
    folder = run_case(case, Screen(Console()), guard)
    found = ruler.stall(folder)
    if not found.within:
        skip_if_busy(folder)
    assert found.within, found
    assert read_run(folder)["measured"]["engine_drained"]
    nothing_left()
