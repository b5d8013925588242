"""Tests of the table of measured windows: rows survive their files, copies count once, and a load
is held only if it was offered and all lags stayed low."""

import shutil
from pathlib import Path

import pytest

from racetrack.analysis import table
from racetrack.analysis.table import Load, Place, Row
from racetrack.errors import UsageError
from racetrack.report.render import document
from racetrack.report.sheet import sheet
from tests.report import folders
from tests.report.folders import RunSpec
from tests.report.test_publish import compared

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


def part_of_an_experiment(logs: Path, tag: str, repeat: int) -> Path:
    """Write a run of an experiment with two windows."""
    path = folders.run(logs, SHORT, tag)
    windows = [
        {"name": "1,000/s", "per_s": 1_000, "figures": {"lag_p99_ms": 40.0 + repeat}},
        {"name": "saturation", "figures": {"capacity_per_s": 50_000.0 + repeat}},
    ]
    part_of = {"experiment": "a_compare", "variant": "steady[HEAP=2g]", "repeat": repeat}
    folders.edit(path, windows=windows, part_of=part_of)
    return path


def identity(one: Row) -> tuple[object, ...]:
    return one.experiment, one.variant, one.repeat, one.window, tuple(one.values.items())


def test_runs_of_an_experiment_pair_wherever_their_folders_are(tmp_path: Path) -> None:
    logs, other = tmp_path / "logs", tmp_path / "other"
    paths = [part_of_an_experiment(logs, f"run_{repeat}", repeat) for repeat in (1, 2)]
    before = [identity(one) for one in table.read([logs]).rows]
    assert len(before) == 4 and {one[:3] for one in before} == {
        ("a_compare", "steady[HEAP=2g]", repeat) for repeat in (1, 2)
    }
    shutil.copytree(paths[0], logs / "a_copy_of_run_1")
    shutil.move(paths[1], other / "renamed")
    found = table.read([logs, other])
    assert sorted(identity(one) for one in found.rows) == sorted(before)
    assert len(found.left_out) == 1


def test_a_figure_that_is_not_registered_is_in_the_records_and_in_no_comparison(
    tmp_path: Path,
) -> None:
    path = part_of_an_experiment(tmp_path, "a_run", 1)
    folders.edit(path, windows=[{"name": "1,000/s", "per_s": 1_000, "figures": {"of_later_ms": 1}}])
    made = document(sheet(table.read([tmp_path])))
    assert made.records[0]["of_later_ms"] == 1
    assert all(not section["figures"] for section in made.more["sections"])


def test_a_copied_comparison_counts_once(tmp_path: Path) -> None:
    folder = compared(tmp_path)
    rows = table.read([tmp_path]).rows
    shutil.copytree(folder, tmp_path / "a_copy")
    found = table.read([tmp_path])
    assert [identity(one)[1:] for one in found.rows] == [identity(one)[1:] for one in rows]
    assert len(found.left_out) == 1


def test_a_comparison_without_its_runs_is_shown_with_one_remark(tmp_path: Path) -> None:
    folder = compared(tmp_path / "logs")
    shutil.move(folder, tmp_path / "moved")
    found = table.read([tmp_path / "moved"])
    assert [one.values for one in found.rows] and not found.folders
    (remark,) = found.left_out
    assert str(tmp_path / "moved") in remark


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
