"""Spark's module without Spark: the views that it makes."""

import re

import pytest

from racetrack import config as settings
from racetrack.engines import find_engine
from racetrack.engines.spark.engine import NOT_MADE
from racetrack.engines.spark.recipe import RECIPE
from racetrack.workloads.contract import find_workload

SPARK = find_engine("spark")
PROGRAM = RECIPE.sources[0] / "racetrack" / "spark"


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
