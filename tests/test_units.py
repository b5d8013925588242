"""Tests of rates, durations and sizes: accepted forms, and errors of others."""

from collections.abc import Callable

import pytest

from loadgen import config
from racetrack import units


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_rate, "1.5M", 1_500_000),
        (units.parse_duration_s, "2m", 120),
        (units.parse_duration_s, "500ms", 0.5),
        (units.parse_milliseconds, "2s", 2_000),
        (units.normal_size, "1.5g", "1536m"),
    ],
)
def test_a_text_has_its_value(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (units.parse_rate, "5m", "not a rate"),
        (units.parse_rate, "100M", "more than the load generator offers"),
        (units.parse_duration_s, "1e3", "not a duration"),
        (units.parse_size_bytes, "8", "without a unit: write 8m or 8g"),
    ],
)
def test_what_is_wrong_is_reported(parse: Callable[[str], object], text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse(text)


def test_the_highest_rate_is_the_generators() -> None:
    assert units.MAX_RATE_PER_S == config.MAX_RATE_PER_S
