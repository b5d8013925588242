"""Tests of rates, durations and sizes: accepted forms, and errors of others."""

from collections.abc import Callable

import pytest

from loadgen import config
from racetrack import units


@pytest.mark.parametrize(
    ("text", "per_s"),
    [("0", 0), ("5000", 5_000), ("5k", 5_000), ("5K", 5_000), ("1.5M", 1_500_000), (" 50 ", 50)],
)
def test_a_rate(text: str, per_s: int) -> None:
    assert units.parse_rate(text) == per_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("20", 20), ("1.0", 1), ("20s", 20), ("2m", 120), ("1h", 3600), ("500ms", 0.5)],
)
def test_a_duration(text: str, seconds: float) -> None:
    assert units.parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "ms"), [("100", 100), ("2s", 2_000), ("0.5ms", 0), ("1m", 60_000)]
)
def test_milliseconds_need_no_unit(text: str, ms: int) -> None:
    assert units.parse_milliseconds(text) == ms


@pytest.mark.parametrize(
    ("text", "normal"),
    [("8G", "8g"), ("8gib", "8g"), ("512m", "512m"), ("1024m", "1g"), ("1.5g", "1536m")],
)
def test_a_size(text: str, normal: str) -> None:
    assert units.normal_size(text) == normal


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (units.parse_rate, "5,000", "write 5000"),
        (units.parse_rate, "5m", "not a rate"),
        (units.parse_rate, "-5", "not a rate"),
        (units.parse_rate, "nan", "not a rate"),
        (units.parse_rate, "0.5", "not a whole number"),
        (units.parse_rate, "100M", "more than the load generator offers"),
        (units.parse_duration_s, "-1", "not a duration"),
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
