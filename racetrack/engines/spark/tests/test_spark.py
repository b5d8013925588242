"""Spark's module without Spark: the views that it makes."""

import pytest

from racetrack import config as settings
from racetrack.engines import find_engine
from racetrack.engines.spark.engine import NOT_MADE

SPARK = find_engine("spark")


@pytest.mark.parametrize(("workload", "absent"), [("shop", NOT_MADE), ("ads", set())])
def test_reports_list_which_views_it_does_not_make(workload: str, absent: set[str]) -> None:
    assert set(SPARK.absent_views(settings.load({"WORKLOAD": workload}))) == absent
