"""Tests of the table of measured windows: rows survive their files, copies count once, and a load
is held only if it was offered and all lags stayed low."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from racetrack.analysis import table
from racetrack.analysis.claims import by_place
from racetrack.analysis.table import Load, Place, Row
from racetrack.errors import UsageError
from racetrack.metrics import METRICS
from racetrack.report.render import document
from racetrack.report.sheet import sheet
from tests.records import verified
from tests.report import folders
from tests.report.folders import PlannedRun, RunSpec, edit, experiment, search, window_at

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


def test_the_lag_of_the_progress_is_that_of_views_without_tracer_rows(tmp_path: Path) -> None:
    folder = folders.run(tmp_path, SHORT, "a_run")
    settings = json.loads((folder / "run.json").read_text())["settings"]
    edit(folder, traced_views=[], settings={**settings, "tracer_events_per_second": 80})
    (found,) = table.read([tmp_path]).rows
    assert found.values["view_lag_p99_ms"] == found.values["lag_p99_ms"]


KILL = "kill:debezium@500k events"


def after_a_kill(logs: Path, **spec: Any) -> tuple[Row, Row]:
    """Return the rows of a run with a fault: of its window, and of its recovery."""
    arguments = {"faults": (KILL,), "share": 0.5, "verify": "verified" in spec}
    folders.run(logs, RunSpec(arguments=arguments, view_delay_ms=700.0, **spec), "a_run")
    window, recovery = table.read([logs]).rows
    return window, recovery


def test_the_recovery_from_a_fault_has_a_row_of_its_own(tmp_path: Path) -> None:
    view = {"status": "right", "compared": 5}
    window, recovery = after_a_kill(tmp_path, verified=verified(some=view))
    assert (window.outcome, window.load) == ("ok", Load(4_000, 0.5))
    assert {key for key in window.values if METRICS[key].per == "fault"} == set()
    assert recovery.load is None and KILL in recovery.window
    assert not recovery.remark and not recovery.at_least
    assert recovery.values == {
        "rate_at_fault_events_per_s": 4_000,
        "up_after_s": 5.0,
        "normal_after_s": 5.0,
        "lost_events": 0,
        "counted_twice_events": 0,
        "wrong_views": 0,
    }


def test_what_a_fault_did_to_counts_is_a_figure_and_leaves_no_run_out(tmp_path: Path) -> None:
    miscounted = {"events": 9, "twice": 3, "lost": 2, "still_counting": False}
    view = {"status": "wrong", "compared": 5, "miscounted": miscounted}
    window, recovery = after_a_kill(tmp_path, verified=verified(some=view))
    assert (window.outcome, recovery.outcome) == ("ok", "ok")
    assert recovery.values["counted_twice_events"] == 3
    assert recovery.values["lost_events"] == 2
    assert recovery.values["wrong_views"] == 1
    assert "some" in recovery.remark


def test_a_lag_that_was_never_normal_again_has_a_lower_bound_and_a_remark(tmp_path: Path) -> None:
    _, recovery = after_a_kill(tmp_path / "count", window_s=17.0)
    assert recovery.values["normal_after_s"] == 8 and recovery.at_least == {"normal_after_s"}
    assert "events" in recovery.remark and "within 8 s" in recovery.remark
    # Views have to be fresh again, too, not only the count.
    _, recovery = after_a_kill(tmp_path / "views", view_leak=0.3)
    assert recovery.at_least == {"normal_after_s"}
    assert "views" in recovery.remark and "events" not in recovery.remark


def test_an_engine_that_was_late_before_a_fault_has_no_recovery_time(tmp_path: Path) -> None:
    _, recovery = after_a_kill(tmp_path, delay_ms=6_000.0)
    assert "up_after_s" in recovery.values and "normal_after_s" not in recovery.values
    assert not recovery.at_least and "before" in recovery.remark


def test_a_copy_of_a_run_counts_once_and_another_run_is_a_repeat(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        table.read([tmp_path])
    for name in ("a_run", "another_run"):
        folders.run(tmp_path, SHORT, name)
    shutil.copytree(tmp_path / "a_run", tmp_path / "z_copy")
    found = table.read([tmp_path])
    assert len(found.rows) == 2
    assert len({each.conditions for each in found.rows}) == 1
    assert len(found.left_out) == 1 and "z_copy" in found.left_out[0]


def test_a_figure_that_is_not_registered_is_in_no_comparison(tmp_path: Path) -> None:
    path = folders.run(tmp_path, SHORT, "a_run")
    folders.edit(path, windows=[{"name": "1,000/s", "per_s": 1_000, "figures": {"of_later_ms": 1}}])
    made = document(sheet(table.read([tmp_path])))
    assert made.records[0]["of_later_ms"] == 1
    assert all(not section["figures"] for section in made.more["sections"])


@pytest.mark.parametrize(
    ("values", "held"),
    [
        ({"lag_p99_ms": 4_999.0, "achieved_events_per_s": 1_000.0}, True),
        ({"lag_p99_ms": 5_001.0, "achieved_events_per_s": 1_000.0}, False),
        ({"lag_p99_ms": 9.0, "view_lag_p99_ms": 5_001.0}, False),
        ({"lag_p99_ms": 9.0, "achieved_events_per_s": 900.0}, False),
        ({"achieved_events_per_s": 1_000.0}, False),
    ],
)
def test_a_load_is_held_if_it_was_offered_and_all_lags_stayed_low(
    values: dict[str, float], held: bool
) -> None:
    assert row(**values).held is held


def compared(logs: Path) -> Path:
    """Write an experiment with two variants and two repeats, each with a rate and saturation."""
    runs = [
        PlannedRun(
            replace(SHORT, engine=engine),
            (
                window_at(1_000, figures={"lag_p99_ms": 900.0, "cpu_s_per_million": cost}),
                window_at(None, figures={"capacity_per_s": 50_000.0}),
            ),
            repeat,
        )
        for repeat in (1, 2)
        for engine, cost in (("steady", 80.0), ("swift", 40.0))
    ]
    return experiment(logs, "quick", runs)


def pairs(found: table.Table) -> set[tuple[str, str, int, str]]:
    return {(row.experiment, row.variant, row.repeat, row.window) for row in found.rows}


def test_an_experiment_has_a_row_for_each_window(tmp_path: Path) -> None:
    folder = compared(tmp_path)
    found = table.read([folder])
    assert not found.missing and not found.left_out and len(found.rows) == 8
    assert pairs(found) == {
        (folder.name, engine, repeat, window)
        for engine in ("steady", "swift")
        for repeat in (1, 2)
        for window in ("1,000/s", "saturation")
    }
    shutil.copytree(next(tmp_path.glob("*_run")), tmp_path / "z_copy")
    again = table.read([tmp_path, folder])
    assert pairs(again) == pairs(found) and len(again.rows) == 8
    assert any("z_copy" in line for line in again.left_out)


def test_moved_runs_still_pair_with_and_without_their_experiment(tmp_path: Path) -> None:
    folder = compared(tmp_path / "logs")
    whole = pairs(table.read([folder]))
    (tmp_path / "logs").rename(tmp_path / "moved")
    moved = tmp_path / "moved" / folder.name
    assert pairs(table.read([moved])) == whole
    apart = moved.rename(tmp_path / folder.name)
    assert pairs(table.read([tmp_path / "moved"])) == whole
    assert len(table.read([apart]).missing) == 4
    both = table.read([apart, tmp_path / "moved"])
    assert pairs(both) == whole and not both.missing


def test_a_run_that_was_not_made_is_missing_with_the_reason(tmp_path: Path) -> None:
    found = table.read([search(tmp_path, "steady", 1_000, "its heap is full")])
    assert [row.outcome for row in found.rows] == ["its heap is full"]
    assert len(found.missing) == 1 and "its capacity is unknown" in found.missing[0]


def test_a_scout_has_no_row(tmp_path: Path) -> None:
    folder = compared(tmp_path)
    scout = folders.run(tmp_path, SHORT, "2026.03.22.04.00.00_UTC_steady_scout")
    part = {"experiment": folder.name, "variant": "steady", "repeat": 1}
    edit(scout, part_of=part)
    record = json.loads((scout / "run.json").read_text())
    del record["results"], record["measured"]
    (scout / "run.json").write_text(json.dumps(record))
    found = table.read([tmp_path])
    assert len(found.rows) == 8 and not found.left_out and not found.missing


def test_engines_on_one_input_are_variants_of_their_own(tmp_path: Path) -> None:
    part = {"experiment": "e", "variant": "steady+swift", "repeat": 1}
    for engine, other in (("steady", "swift"), ("swift", "steady")):
        path = folders.run(tmp_path, replace(SHORT, engine=engine), engine)
        edit(path, part_of=part, beside=[other])
    assert {row.variant for row in table.read([tmp_path]).rows} == {"steady", "swift"}


def test_trials_of_a_search_are_rows_that_are_not_compared(tmp_path: Path) -> None:
    found = table.read([search(tmp_path, "steady", 50_000)])
    assert [row.share for row in found.rows if row.is_trial] == [0.9, 0.95]
    ((_, compared_rows),) = by_place(found.rows).items()
    assert [row.window for row in compared_rows] == ["saturation", "search", "saturation"]


@pytest.mark.parametrize("name", table.OF_EARLIER)
def test_a_record_of_several_runs_by_an_earlier_version_gives_one_line(
    tmp_path: Path, name: str
) -> None:
    folders.run(tmp_path, SHORT, "a_run")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / name).write_text('{"schema_version": 1}')
    found = table.read([tmp_path])
    assert len(found.rows) == 1
    assert len(found.left_out) == 1 and name in found.left_out[0]
    with pytest.raises(UsageError, match=name):
        table.read([tmp_path / "old"])


def test_a_run_of_an_earlier_day_has_its_row(tmp_path: Path) -> None:
    path = folders.run(tmp_path, SHORT, "a_run")
    record = json.loads((path / "run.json").read_text())
    kept = ("schema_version", "run_id", "tag", "engine", "arguments", "outcome", "results")
    (path / "run.json").write_text(json.dumps({key: record[key] for key in kept}))
    (row_of_run,) = table.read([path]).rows
    assert row_of_run.values["lag_p99_ms"] > 0


@pytest.mark.parametrize("text", ["", "[]", '{"schema_version": 1, "kind": "other"}'])
def test_a_damaged_experiment_gives_one_line_and_its_runs_are_read(
    tmp_path: Path, text: str
) -> None:
    file = compared(tmp_path) / "experiment.json"
    file.write_text(text)
    found = table.read([tmp_path])
    assert len(found.rows) == 8 and not found.missing
    (line,) = found.left_out
    assert str(file) in line


@pytest.mark.parametrize(
    "record",
    [
        {"engine": 1},
        {"engine": "dh", "requested_events_per_s": "many"},
        {"engine": "dh", "repeat": []},
        {"engine": "dh", "requested_events_per_s": 1, "share_of_capacity": "half"},
    ],
)
def test_a_foreign_record_is_named_with_its_file(tmp_path: Path, record: dict[str, Any]) -> None:
    file = tmp_path / "foreign.json"
    file.write_text(json.dumps({"records": [record]}))
    with pytest.raises(UsageError, match=r"foreign\.json"):
        table.read([file])
