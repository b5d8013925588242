"""Tests of the table of measured windows: rows survive their files, copies count once, and a load
is held only if it was offered and all lags stayed low."""

import shutil
from pathlib import Path

import pytest

from racetrack.analysis import table
from racetrack.analysis.table import Load, Place, Row
from racetrack.errors import UsageError
from tests.report import folders
from tests.report.folders import RunSpec

SHORT = RunSpec(window_s=10.0)


def row(**values: float) -> Row:
    return Row("dh", "dh", Place("shop", "native", "a machine"), Load(1_000), "1,000/s", values)


def test_a_row_survives_its_flat_record(tmp_path: Path) -> None:
    folders.run(tmp_path, SHORT, "a_run")
    (found,) = table.read([tmp_path]).rows
    record = table.as_record(found)
    again = table.from_record(record, tmp_path / "runs.json")
    assert found.values and again.place == found.place and again.load == found.load
    assert {**table.as_record(again), **found.facts, "experiment": ""} == record


def test_a_copy_of_a_run_counts_once_and_another_run_is_a_repeat(tmp_path: Path) -> None:
    path = folders.run(tmp_path, SHORT, "a_run")
    folders.run(tmp_path, SHORT, "another_run")
    shutil.copytree(path, tmp_path / "a_copy")
    found = table.read([tmp_path])
    assert len(found.rows) == 2
    assert len({each.conditions for each in found.rows}) == 1
    assert any("a_copy" in line or "a_run" in line for line in found.left_out)


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        table.read([tmp_path])


@pytest.mark.parametrize(
    ("values", "held"),
    [
        ({"lag_p99_ms": 4_999.0, "achieved_pageviews_per_s": 1_000.0}, True),
        ({"lag_p99_ms": 5_001.0, "achieved_pageviews_per_s": 1_000.0}, False),
        ({"lag_p99_ms": 9.0, "view_lag_p99_ms": 5_001.0}, False),
        ({"lag_p99_ms": 9.0, "achieved_pageviews_per_s": 900.0}, False),
        ({"achieved_pageviews_per_s": 1_000.0}, False),
    ],
)
def test_a_load_is_held_if_it_was_offered_and_all_lags_stayed_low(
    values: dict[str, float], held: bool
) -> None:
    assert row(**values).held is held
