"""Spark's module without Spark: what it makes of what it reads, and what its program is told."""

import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engines import find_engine
from engines.contract import NoSuchView, Progress, Summary
from engines.shared.upsert import engine, totals
from engines.shared.upsert.topics import Written
from engines.spark import recipe
from engines.spark.engine import NOT_MADE
from engines.spark.services import spark
from racetrack import install, settings
from racetrack.stack.native.service import Context, NotReady
from racetrack.workload import find_workload

SPARK = find_engine("spark")
KAFKA = "127.0.0.1:54092"
PROGRAM = recipe.SOURCES / "racetrack" / "spark"


def stack(**knobs: str) -> Any:
    return SimpleNamespace(
        settings=settings.load(knobs),
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


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(settings.load(), tmp_path, {"spark": tmp_path})


def test_it_is_ready_when_its_program_says_so_and_not_by_an_earlier_one(context: Context) -> None:
    service = spark.SERVICE
    ready = Path(service.launch(context).env["SPARK_READY_FILE"])
    with pytest.raises(NotReady):
        service.check(context)
    ready.touch()
    service.check(context)
    service.launch(context)
    with pytest.raises(NotReady):
        service.check(context)


def test_its_program_is_told_all_that_it_asks_for(context: Context) -> None:
    source = (PROGRAM / "Settings.java").read_text()
    asked = set(re.findall(r'env\.(?:text|number)\("(\w+)"\)', source))
    assert asked
    assert spark.SERVICE.launch(context).env.keys() == asked


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


def test_the_versions_that_are_locked_are_those_of_the_settings() -> None:
    version = install.read_versions(environ={})["SPARK_VERSION"]
    for part in (recipe.MAVEN, recipe.FOR_TESTS):
        assert part.hashes.read_text().startswith(f"# SPARK_VERSION={version}\n")


@pytest.mark.parametrize(("workload", "absent"), [("shop", NOT_MADE), ("ads", set())])
def test_reports_are_told_which_views_it_does_not_make(workload: str, absent: set[str]) -> None:
    assert set(SPARK.absent_views(settings.load({"WORKLOAD": workload}))) == absent
