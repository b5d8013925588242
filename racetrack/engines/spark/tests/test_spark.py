"""Spark's module without Spark: what it makes of what it reads, and what is in its program."""

import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from racetrack import config as settings
from racetrack.engines import find_engine
from racetrack.engines.contract import NoSuchView, Progress, Summary
from racetrack.engines.shared.upsert import engine, totals
from racetrack.engines.shared.upsert.topics import Written
from racetrack.engines.spark.engine import NOT_MADE
from racetrack.engines.spark.recipe import RECIPE
from racetrack.workloads.contract import find_workload

SPARK = find_engine("spark")
KAFKA = "127.0.0.1:54092"
PROGRAM = RECIPE.sources[0] / "racetrack" / "spark"


def stack(**overrides: str) -> Any:
    return SimpleNamespace(
        settings=settings.load(overrides),
        endpoints=SimpleNamespace(kafka=KAFKA),
        log_of=lambda service: Path(f"/logs/{service}.log"),
    )


def test_progress_is_what_the_topics_say(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [
        Written(
            "spark.ad_events_progress",
            0,
            1_700_000_000_100,
            b'{"partition":2}',
            b'{"partition":2,"total":5,"max_received_at":1700000000040}',
        ),
        None,
        Written(
            "spark.ad_events_summary",
            0,
            1_700_000_000_123,
            b'"all"',
            b'{"summary_of":"all","total":7,"max_received_at":1700000000050}',
        ),
    ]
    monkeypatch.setattr(totals, "follow", lambda *_: iter(told))
    assert list(SPARK.updates(stack(WORKLOAD="ads"), threading.Event())) == [
        Progress(1_700_000_000_100, 2, 5, 1_700_000_000_040),
        Summary(1_700_000_000_123, 7, 1_700_000_000_050, 73.0),
    ]


def test_a_view_that_it_does_not_make_is_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "names", lambda _: {"spark.items"})
    monkeypatch.setattr(engine, "is_written", lambda *_: True)
    monkeypatch.setattr(engine, "latest", lambda *_: [])
    assert SPARK.read_view(stack(), "items").num_rows == 0
    with pytest.raises(NoSuchView, match="does not make the view 'profile_views'"):
        SPARK.read_view(stack(), "profile_views")


@pytest.mark.parametrize(
    ("workload", "source", "not_made"),
    [("shop", "ShopViews.java", NOT_MADE), ("ads", "AdsViews.java", set[str]())],
)
def test_it_makes_the_views_that_it_can(workload: str, source: str, not_made: set[str]) -> None:
    """They are in the program, in the words of the workload."""
    listed = re.search(
        r"views\(\) \{\s+return List\.of\((.*?)\);", (PROGRAM / source).read_text(), re.DOTALL
    )
    assert listed
    made = set(re.findall(r'"(\w+)"', listed[1])) | {find_workload(workload).summary}
    assert made == {view.name for view in find_workload(workload).views} - not_made


@pytest.mark.parametrize(("workload", "absent"), [("shop", NOT_MADE), ("ads", set())])
def test_reports_are_told_which_views_it_does_not_make(workload: str, absent: set[str]) -> None:
    assert set(SPARK.absent_views(settings.load({"WORKLOAD": workload}))) == absent
