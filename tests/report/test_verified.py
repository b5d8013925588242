"""Tests of a verification's findings on the terminal, on the page and in the table of runs."""

from pathlib import Path

import pytest

from racetrack.analysis.warnings import Grade, count_views, view_caveats, warnings_of
from racetrack.report import summary
from racetrack.results import folder as runfolder
from tests.records import verified
from tests.report.folders import ABSENT, RIGHT, UNREADABLE, WRONG, RunSpec, run
from tests.report.test_report import report_on
from tests.run_json import read_run

pytestmark = pytest.mark.slow

FOUND = verified(users=RIGHT, item_summary=WRONG, hvu_test=ABSENT, purchases=UNREADABLE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("logs"), RunSpec(window_s=10.0, verified=FOUND))


def test_a_wrong_view_is_in_outcome_terminal_page_and_table(folder: Path, tmp_path: Path) -> None:
    assert read_run(folder)["outcome"] == "Views are wrong: item_summary, purchases"
    shown = "\n".join(summary.describe_run(runfolder.read_run(folder), folder))
    for part in (
        "1 of 3 right (3 of 4 views): 14 rows compared with 34 of 2 sources",
        "item_summary: 1 different",
        "source  item_id=7, revenue=12.5",
        "purchases: unreadable: it is gone",
    ):
        assert part in shown
    (tmp_path / "verified.json").write_text("{}")  # a folder of ./race verify is no run
    report = report_on([folder, tmp_path], tmp_path)
    assert "source 12.5 , engine <b>13</b>" in report.words
    assert "<b>13</b></b>" not in report.html  # values are shown as text, not as markup
    (row,) = report.rows.values()
    assert (row["views_there"], row["views_of_workload"]) == ("3", "4")
    assert row["views_right"] == "1"
    assert row["views_wrong"] == "item_summary purchases"


def test_views_that_an_engine_can_not_express_are_a_caveat_and_counted(tmp_path: Path) -> None:
    made = runfolder.read_run(run(tmp_path, RunSpec(window_s=10.0, absent=("hvu_test",))))
    (caveat,) = view_caveats(made)
    assert "has 16 of 17 views, not hvu_test" in caveat
    assert caveat in warnings_of(made)[Grade.COMPARING]
    assert count_views(made) == (16, 17)


def test_cdc_and_engine_are_distinguished_and_long_values_cut(tmp_path: Path) -> None:
    row = {"finding": "different", "source": {"id": 1, "email": "é" * 500}, "engine": {"id": 1}}
    of_cdc = {"status": "wrong", "compared": 20, "different": 20, "first": [row]}
    found = {
        **verified(users=RIGHT),
        "cdc": {
            "caught_up_after_s": None,
            "tables": {"users": of_cdc, "items": RIGHT},
            "statements": ["TRUNCATE TABLE users (binlog.000001, position 4)"],
        },
        "unfit": {"pageviews": {"count": 7, "first": ["partition 0, offset 3: no value"]}},
    }
    folder = run(tmp_path, RunSpec(window_s=10.0, verified=found))
    run_record = read_run(folder)["outcome"]
    assert run_record.startswith("CDC delivered 20 rows that differ from MySQL, in users;")
    assert run_record.endswith("Messages are unfit: pageviews (7)")
    lines = summary.describe_run(runfolder.read_run(folder), folder)
    text = "\n".join(lines)
    for part in ("1 of 2 topics", "users: 20 different", "TRUNCATE TABLE users", "offset 3"):
        assert part in text
    assert max(map(len, lines)) < 300
    assert "é" * 101 not in report_on([folder], tmp_path / "out").html
