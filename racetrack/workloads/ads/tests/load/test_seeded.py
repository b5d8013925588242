"""Tests of the database's initial rows, and of the generator's settings for them."""

from collections import Counter

import pytest

from loadgen.config import ConfigError
from racetrack.workloads.ads.load.database import seeded
from racetrack.workloads.ads.load.sequence import Ids
from racetrack.workloads.ads.tests.load.ads_settings import load


def test_every_campaign_has_as_many_ads() -> None:
    settings = load(ADS_CAMPAIGNS="7", ADS_PER_CAMPAIGN="3")
    campaigns, ads = seeded(settings)
    assert len(campaigns.rows) == 7
    per_campaign = Counter((campaign,) for _, campaign in ads.rows)
    assert per_campaign == dict.fromkeys(campaigns.rows, 3)
    assert [ad for ad, _ in ads.rows] == Ids.of(settings).ads


@pytest.mark.parametrize("name", ["ADS_CAMPAIGNS", "ADS_PER_CAMPAIGN"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "1000000"])
def test_a_setting_that_can_not_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load(**{name: value})
