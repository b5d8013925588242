"""Tests of the shop's settings: defaults, and one clear line for each value that can't be used."""

import pytest

from loadgen.config import ConfigError
from loadgen.popularity import zipf
from loadgen.sequence import Stream
from racetrack.config import load as load_all
from racetrack.errors import UsageError
from racetrack.workloads.contract import RECORD_BYTES, find_workload
from racetrack.workloads.shop import settings as harness
from racetrack.workloads.shop.load.render import to_json
from racetrack.workloads.shop.load.sequence import pageview
from racetrack.workloads.shop.load.settings import MAX_PAGEVIEW_BYTES, MIN_PAGEVIEW_BYTES
from racetrack.workloads.shop.tests.load.shop_settings import load


def test_both_sides_take_the_same_sizes() -> None:
    limits = (MIN_PAGEVIEW_BYTES, MAX_PAGEVIEW_BYTES)
    assert limits == (harness.MIN_PAGEVIEW_BYTES, harness.MAX_PAGEVIEW_BYTES)
    assert load(SHOP_PAGEVIEW_BYTES="128", SHOP_KEY_SKEW="1.2").pageview_bytes == 128
    with pytest.raises(UsageError, match="SHOP_PAGEVIEW_BYTES: 127 bytes do not hold a pageview"):
        load_all({"SHOP_PAGEVIEW_BYTES": "127"})
    with pytest.raises(UsageError, match=r"SHOP_KEY_SKEW: '-0\.1' is out of range"):
        load_all({"SHOP_KEY_SKEW": "-0.1"})


def test_the_broker_s_space_is_foreseen_from_the_size() -> None:
    shop = find_workload("shop")
    assert shop.stored_bytes_in(load_all({"SHOP_PAGEVIEW_BYTES": "1000"})) == 1000 + RECORD_BYTES
    stream, items, users = Stream(42, "pageviews/0"), zipf(1_000), zipf(10_000)
    events = (pageview(stream, n, list(range(1, 10_001)), items, users, users) for n in range(1000))
    sizes = [len(to_json(*event, 1_763_712_000_123)) for event in events]
    assert shop.stored_bytes_in(load_all()) == pytest.approx(
        sum(sizes) / len(sizes) + RECORD_BYTES, abs=2
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("SHOP_USERS", "200001"), ("SHOP_KEY_SKEW", "nan"), ("SHOP_PAGEVIEW_BYTES", "65537")],
)
def test_a_setting_that_can_not_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}="):
        load(**{name: value})
