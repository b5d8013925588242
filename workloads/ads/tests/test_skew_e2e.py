"""Events whose times are skewed and late, on the real stack: counted by the times that they say."""

import pytest

from engines import all_engines
from tests.e2e.shared import Door, ended_well

pytestmark = pytest.mark.e2e

ENGINE = next(one.name for one in all_engines() if "ads" in one.scripts)


def test_every_window_is_right_however_late_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADS_WITH_SKEW", "true")
    run = ended_well(
        Door("run_experiment.sh", ENGINE, "5000", "5", "10", "1.0", "--verify", "--workload", "ads")
    )
    assert run["settings"]["ads_with_skew"] is True
    results = run["results"]
    assert results["processed_pageviews"] == results["published_pageviews"] > 50_000
    assert run["verified"]["views"]["campaign_windows"]["status"] == "right"
