"""Tests of the tracer events of `ads`: views of reserved ads, one per partition."""

import json
from collections import Counter

from loadgen.tracers import TracerEvents
from racetrack.config import load as load_all
from racetrack.workloads.ads.load.database import seeded
from racetrack.workloads.ads.load.events import AdEvents
from racetrack.workloads.ads.load.sequence import Ids
from racetrack.workloads.ads.load.tracers import Reserved
from racetrack.workloads.ads.tests.load.ads_settings import load
from racetrack.workloads.contract import find_workload
from tests.loadgen.messages import message_ffi, rendered

DUE_MS = 1_763_712_000_123
SETTINGS = load(ADS_WITH_SKEW="true", ADS_KEY_SKEW="1.2")
RESERVED = Reserved.of(SETTINGS.partitions)


def test_each_partition_views_an_ad_of_a_campaign_of_its_own() -> None:
    events = AdEvents(SETTINGS, message_ffi())
    renderer, count = events.renderer(64), 4 * SETTINGS.partitions
    placed = [events.derived(TracerEvents.name, n) for n in range(count)]
    for _, event in placed:
        renderer.one(event, DUE_MS)
    campaign_of = {str(ad): campaign for ad, campaign in seeded(SETTINGS)[1].rows}
    assert Counter(partition for partition, _ in placed) == dict.fromkeys(range(6), 4)
    for (partition, _), (_, value) in zip(placed, rendered(renderer), strict=True):
        event = json.loads(value)
        assert (event["event_type"], event["event_time"]) == ("view", DUE_MS)
        assert campaign_of[event["ad_id"]] == RESERVED.campaigns[partition]


def test_no_other_event_uses_a_reserved_ad() -> None:
    renderer = AdEvents(SETTINGS, message_ffi()).renderer(2_000)
    renderer.events(renderer.share(0), 0, 2_000, DUE_MS)
    ads = {json.loads(value)["ad_id"] for _, value in rendered(renderer)}
    assert ads <= set(Ids.of(SETTINGS).ads) and not ads & set(RESERVED.ads)


def test_the_harness_looks_for_the_reserved_campaigns() -> None:
    (view,) = find_workload("ads").traced_views
    assert view.keys(load_all({"WORKLOAD": "ads"})) == RESERVED.campaigns
