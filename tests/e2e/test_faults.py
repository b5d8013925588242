"""End-to-end tests of faults on the real stack: recorded, ended, and views right."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from racetrack.analysis import curves, raw
from racetrack.analysis.raw import rows_of
from racetrack.engines import find_engine
from tests.e2e.shared import Door, check_views_after_a_kill, run_folder
from tests.run_json import read_run
from tests.some_engines import EXAMPLE

pytestmark = pytest.mark.e2e

FAULTS = ("kill:debezium@2s", "pause:broker@12s+2s", "kill:mysql@16s", "kill:engine@24s")


@pytest.fixture(scope="module")
def changing() -> Iterator[None]:
    """Add reads, and also updates and deletions, which reveal events that were lost or repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READS_PER_SECOND", "2")
        patch.setenv("UPDATES_PER_SECOND", "10")
        patch.setenv("DELETES_PER_SECOND", "5")
        yield


@pytest.fixture(scope="module")
def finished(changing: None) -> Door:
    """Run one experiment at 500/s with all kinds of faults, verified at its end."""
    faults = [word for fault in FAULTS for word in ("--fault", fault)]
    door = Door("run_experiment.sh", EXAMPLE, "500", "5", "25", "1.0", "--verify", *faults)
    door.wait(within_s=600)
    return door


@pytest.fixture(scope="module")
def run(finished: Door) -> dict[str, Any]:
    return read_run(run_folder(finished.output))


@pytest.fixture(scope="module")
def folder(finished: Door) -> Path:
    return run_folder(finished.output)


def test_each_fault_was_done_and_recorded(
    run: dict[str, Any], folder: Path, nothing_left: Callable[[], None]
) -> None:
    nothing_left()
    done = run["faults"]["done"]
    assert [each["fault"] for each in done] == list(FAULTS)
    own = list(find_engine(EXAMPLE).services)
    assert [each["services"] for each in done] == [["debezium"], ["broker"], ["mysql"], own]
    first, pause, _, engine = done
    # A fault never begins too early, but may be delayed by the machine's other programs.
    assert 1_950 < first["at_ms"] - run["faults"]["from_ms"] < 12_000
    assert 1_950 < pause["until_ms"] - pause["at_ms"] < 12_000
    assert pause["restart_s"] is None
    assert engine["restart_s"] > 0
    assert engine["reload_s"] > 0
    for service, readings in raw.usage(folder).items():  # what the dead have used stays
        used = [reading.cpu_s for reading in readings]
        assert used == sorted(used), service


def test_who_reads_gets_answers_again(folder: Path, run: dict[str, Any]) -> None:
    reads = rows_of(folder / "reads.csv", dict)
    failed = [int(row["answered_ms"]) for row in reads if row["error"]]
    killed = run["faults"]["done"][3]
    assert failed and min(failed) >= killed["at_ms"]
    assert int(reads[-1]["answered_ms"]) > killed["until_ms"]
    assert not reads[-1]["error"]


def test_nothing_was_lost_and_nothing_counted_twice(run: dict[str, Any], finished: Door) -> None:
    assert run["measured"]["handed_over"] == run["measured"]["end_offsets"]
    assert run["results"]["processed_events"] == run["results"]["published_events"]
    check_views_after_a_kill(run, finished)


def test_lag_came_back_each_time(run: dict[str, Any]) -> None:
    for back in run["results"]["faults"]:
        assert back["events"]["after_s"] is not None, back
        assert back["purchases"]["after_s"] is not None, back
    debezium, _, _, engine = run["results"]["faults"]
    assert debezium["purchases"]["after_s"] > 0
    assert engine["events"]["after_s"] > run["faults"]["done"][3]["restart_s"]


def test_the_engine_s_counts_fell_to_zero(folder: Path, run: dict[str, Any]) -> None:
    killed = run["faults"]["done"][3]
    dead_ms = killed["until_ms"] - 1_000 * (killed["restart_s"] + killed["reload_s"])
    for curve in curves.read(folder).processed:
        # The engine may have counted until it died, but its count must be 0 before the restart.
        assert curve.count[curve.at_ms <= dead_ms][-1] == 0
        after = curve.count[curve.at_ms >= killed["at_ms"]]
        assert 0 in after
        assert after[-1] > 0
