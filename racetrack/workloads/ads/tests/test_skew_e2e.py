"""End-to-end test that skewed and late events are counted in the windows of their times."""

import pytest

from tests.e2e.shared import Door, ended_well
from tests.some_engines import EXAMPLE

pytestmark = pytest.mark.e2e


def test_every_window_is_right_however_late_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADS_WITH_SKEW", "true")
    arguments = (EXAMPLE, "5000", "5", "10", "1.0", "--verify", "--workload", "ads")
    run = ended_well(Door("run_experiment.sh", *arguments))
    assert run["settings"]["ads_with_skew"] is True
    results = run["results"]
    assert results["processed_events"] == results["published_events"] > 50_000
    assert run["verified"]["views"]["campaign_windows"]["status"] == "right"
