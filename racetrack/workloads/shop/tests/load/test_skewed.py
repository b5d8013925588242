"""Tests that with SHOP_KEY_SKEW users and items follow Zipf's law, in the pageviews of all
partitions together and in purchases."""

import json
from collections import Counter
from typing import Any

import pytest
from scipy.stats import chisquare

from loadgen.clock import NS_PER_S
from loadgen.schedule import Schedule
from racetrack.workloads.shop.load.pageviews import Pageviews
from racetrack.workloads.shop.load.purchases import Purchases
from racetrack.workloads.shop.load.tracers import Reserved
from racetrack.workloads.shop.tests.load.shop_settings import load
from tests.loadgen.messages import message_ffi, rendered

EXPONENT, STAMP_MS = 1.2, 1_763_712_000_123
SHOP = load(SHOP_USERS="200", SHOP_ITEMS="50", EVENTS_PARTITIONS="3", SHOP_KEY_SKEW="1.2")
LAST_USER = Reserved.of(SHOP).last_user
# The users of each partition, distributed as by a hash.
USERS = [[u for u in range(1, LAST_USER + 1) if u * 7919 % 3 == p] for p in range(3)]
PAGEVIEWS = 60_000


@pytest.fixture(scope="module")
def pageviews() -> Pageviews:
    return Pageviews(SHOP, USERS, message_ffi())


@pytest.fixture(scope="module")
def sent(pageviews: Pageviews) -> list[dict[str, Any]]:
    """Return about PAGEVIEWS messages, divided among the partitions by their weights."""
    renderer, found = pageviews.renderer(PAGEVIEWS), []
    for partition, weight in enumerate(pageviews.weights):
        renderer.clear()
        count = round(PAGEVIEWS * weight / sum(pageviews.weights))
        renderer.events(renderer.share(partition), 0, count, STAMP_MS)
        found += [json.loads(value) for _, value in rendered(renderer)]
    return found


def follows_zipf(found: Counter[int], count: int) -> bool:
    shares = [n**-EXPONENT for n in range(1, count + 1)]
    expected = [found.total() * share / sum(shares) for share in shares]
    observed = [found[n] for n in range(1, count + 1)]
    return bool(chisquare(observed, expected).pvalue > 0.001) and found.keys() <= {
        *range(1, count + 1)
    }


@pytest.mark.slow
def test_viewers_products_and_profiles_follow_zipf_s_law(sent: list[dict[str, Any]]) -> None:
    assert follows_zipf(Counter(view["user_id"] for view in sent), SHOP.users)
    for kind, count in (("products", SHOP.items), ("profiles", SHOP.users)):
        urls = [view["url"].split("/") for view in sent]
        assert follows_zipf(Counter(int(url[2]) for url in urls if url[1] == kind), count)


def test_buyers_and_what_they_buy_follow_it_too() -> None:
    purchases = Purchases(SHOP, Schedule.starting(0, 0, 1000 * NS_PER_S))
    buys = [purchases.make(n, 0) for n in range(20_000)]
    assert follows_zipf(Counter(user for user, _, _ in buys), SHOP.users)
    assert follows_zipf(Counter(item for _, item, _ in buys), SHOP.items)
