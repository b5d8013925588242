"""Tests of the database's initial rows, and of the generator's settings."""

from collections import Counter

import pytest

from loadgen.config import ConfigError
from racetrack.config import load as load_all
from racetrack.errors import UsageError
from racetrack.workloads.ads import settings as harness
from racetrack.workloads.ads.load import settings as generator
from racetrack.workloads.ads.load.database import seeded
from racetrack.workloads.ads.load.sequence import Ids
from racetrack.workloads.ads.load.tracers import Reserved
from racetrack.workloads.ads.tests.load.ads_settings import load
from racetrack.workloads.contract import RECORD_BYTES, find_workload


def test_every_campaign_has_as_many_ads() -> None:
    settings = load(ADS_CAMPAIGNS="7", ADS_PER_CAMPAIGN="3")
    campaigns, ads = seeded(settings)
    reserved = Reserved.of(settings.partitions)
    assert [name for (name,) in campaigns.rows[7:]] == reserved.campaigns
    per_campaign = Counter((campaign,) for _, campaign in ads.rows)
    assert per_campaign == {row: 3 if n < 7 else 1 for n, row in enumerate(campaigns.rows)}
    assert [ad for ad, _ in ads.rows] == [*Ids.of(settings).ads, *reserved.ads]


@pytest.mark.parametrize(
    ("name", "value"),
    [("ADS_CAMPAIGNS", "0"), ("ADS_USERS", "1000000"), ("ADS_EVENT_BYTES", "279")],
)
def test_a_setting_that_can_not_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load(**{name: value})


def test_both_sides_accept_the_same_numbers_of_users_and_sizes() -> None:
    for name in ("MAX_USERS", "MIN_EVENT_BYTES", "MAX_EVENT_BYTES"):
        assert getattr(generator, name) == getattr(harness, name)
    for name, value in {"ADS_USERS": "10001", "ADS_EVENT_BYTES": "279"}.items():
        with pytest.raises(UsageError, match=name):
            load_all({name: value})
    settings = harness.AdsSettings.of(load_all())
    assert (settings.ads_users, settings.ads_event_bytes) == (load().users, load().event_bytes)


def test_the_broker_s_space_is_computed_from_the_size() -> None:
    found = find_workload("ads").stored_bytes_in(load_all({"ADS_EVENT_BYTES": "1000"}))
    assert found == 1000 + RECORD_BYTES
