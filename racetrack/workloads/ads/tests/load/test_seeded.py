"""Initial rows of the database, and settings of the generator for them."""

from collections import Counter

import pytest

from loadgen.clock import NS_PER_S
from loadgen.config import ConfigError, Reader
from loadgen.config import load as load_config
from loadgen.schedule import Schedule
from racetrack.workloads.ads.load import make
from racetrack.workloads.ads.load.database import seeded
from racetrack.workloads.ads.load.events import AdEvents
from racetrack.workloads.ads.load.sequence import Ids
from racetrack.workloads.ads.tests.load.ads_settings import load


def test_every_campaign_has_as_many_ads() -> None:
    settings = load(ADS_CAMPAIGNS="7", ADS_PER_CAMPAIGN="3")
    campaigns, ads = seeded(settings)
    assert len(campaigns.rows) == 7
    per_campaign = Counter((campaign,) for _, campaign in ads.rows)
    assert per_campaign == dict.fromkeys(campaigns.rows, 3)
    assert [ad for ad, _ in ads.rows] == Ids.of(settings).ads


def test_rows_go_in_few_statements() -> None:
    campaigns, ads = seeded(load())
    ((sql, values),) = campaigns.statements()
    assert sql.startswith("INSERT INTO ads.campaigns (campaign_id) VALUES (%s)")
    assert sql.count("%s") == len(values) == 100
    ((sql, values),) = ads.statements()
    assert sql.startswith("INSERT INTO ads.ads (ad_id, campaign_id) VALUES (%s, %s)")
    assert sql.count("%s") == len(values) == 2_000


def test_every_partition_gets_as_many_events() -> None:
    assert AdEvents(load(PAGEVIEWS_PARTITIONS="3"), None).weights == [1, 1, 1]


def test_nothing_is_asked_for_beside_the_events() -> None:
    env = {"MYSQL_PASSWORD": "x", "WORKLOAD": "ads"}
    config = load_config(env)
    workload = make(config, Reader(env))
    assert (workload.name, workload.topic, list(workload.topics)) == ("ads", "ad-events", [])
    assert workload.sources(lambda: Schedule.starting(0, 0, NS_PER_S)) == []
    assert (config.mysql_user, workload.database().name) == ("ads", "ads")


@pytest.mark.parametrize("name", ["ADS_CAMPAIGNS", "ADS_PER_CAMPAIGN"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "1000000"])
def test_a_setting_that_can_not_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load(**{name: value})
