"""The shop's settings: defaults, and one clear line for each that can't be used."""

import pytest

from loadgen.config import ConfigError
from racetrack.workloads.shop.tests.load.shop_settings import load


def test_defaults() -> None:
    loaded = load()
    assert loaded.purchases_milli_per_s == 3_000
    assert (loaded.updates_milli_per_s, loaded.deletes_milli_per_s) == (0, 0)
    assert loaded.tracer_events_milli_per_s == 0
    assert (loaded.users, loaded.items, loaded.partitions) == (10_000, 1_000, 6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PURCHASES_PER_SECOND_START", "99999999999999999999"),
        ("SHOP_USERS", "200001"),
        ("SHOP_FLAGGED_PROFILES", "10001"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(**{name: value})
    assert str(caught.value).startswith(f"{name}=")
    assert "it takes" in str(caught.value)
    assert "\n" not in str(caught.value)
