"""Tests of rates, durations and sizes: accepted forms, and errors of others."""

from collections.abc import Callable

import pytest

from loadgen import config
from racetrack import units


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_rate, "0", 0),
        (units.parse_rate, "5K", 5_000),
        (units.parse_rate, "1.5M", 1_500_000),
        (units.parse_rate, " 50 ", 50),
        (units.parse_duration_s, "1.0", 1),
        (units.parse_duration_s, "20s", 20),
        (units.parse_duration_s, "2m", 120),
        (units.parse_duration_s, "1h", 3600),
        (units.parse_duration_s, "500ms", 0.5),
        (units.parse_milliseconds, "100", 100),
        (units.parse_milliseconds, "2s", 2_000),
        (units.parse_milliseconds, "0.5ms", 0),
        (units.normal_size, "8gib", "8g"),
        (units.normal_size, "512m", "512m"),
        (units.normal_size, "1024m", "1g"),
        (units.normal_size, "1.5g", "1536m"),
    ],
)
def test_a_text_has_its_value(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (units.parse_rate, "5,000", "write 5000"),
        (units.parse_rate, "5m", "not a rate"),
        (units.parse_rate, "-5", "not a rate"),
        (units.parse_rate, "0.5", "not a whole number"),
        (units.parse_rate, "100M", "more than the load generator offers"),
        (units.parse_duration_s, "inf", "not a duration"),
        (units.parse_duration_s, "1e3", "not a duration"),
        (units.parse_size_bytes, "8", "without a unit: write 8m or 8g"),
        (units.parse_size_bytes, "0g", "not a size"),
    ],
)
def test_what_is_wrong_is_reported(parse: Callable[[str], object], text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse(text)


def test_the_highest_rate_is_the_generators() -> None:
    assert units.MAX_RATE_PER_S == config.MAX_RATE_PER_S
