"""Tests of the database's initial rows."""

from collections import Counter

from racetrack.workloads.ads.load.database import seeded
from racetrack.workloads.ads.load.sequence import Ids
from racetrack.workloads.ads.load.tracers import Reserved
from racetrack.workloads.ads.tests.load.ads_settings import load


def test_every_campaign_has_as_many_ads() -> None:
    settings = load(ADS_CAMPAIGNS="7", ADS_PER_CAMPAIGN="3")
    campaigns, ads = seeded(settings)
    reserved = Reserved.of(settings.partitions)
    assert [name for (name,) in campaigns.rows[7:]] == reserved.campaigns
    per_campaign = Counter((campaign,) for _, campaign in ads.rows)
    assert per_campaign == {row: 3 if n < 7 else 1 for n, row in enumerate(campaigns.rows)}
    assert [ad for ad, _ in ads.rows] == [*Ids.of(settings).ads, *reserved.ads]
