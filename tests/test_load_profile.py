"""Tests of load profiles: their texts, their rates over time, and errors of invalid texts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from racetrack.workloads.load_profile import NEVER_S, LoadProfile, parse

WriteCsv = Callable[[str], str]


@pytest.fixture
def recorded(tmp_path: Path) -> WriteCsv:
    """Return a function that writes a CSV file and returns the text of its profile."""

    def write(rows: str) -> str:
        (tmp_path / "day of sale.csv").write_text(rows)
        return f"recorded {tmp_path / 'day of sale.csv'}"

    return write


def changes(profile: LoadProfile, until_s: float) -> list[tuple[float, int]]:
    """Return the times at which rates are set, up to a time, and the rates."""
    found, at_s = [], 0.0
    while at_s < until_s:
        found.append((at_s, profile.rate_until_next_change(at_s)))
        at_s = profile.next_change_s(at_s)
    return found


@pytest.mark.parametrize(
    ("text", "rates", "duration_s", "mean_per_s"),
    [
        ("constant 5k", {0: 5_000, 1e6: 5_000}, 0, 5_000),
        ("ramp 1k 51k 50s", {0: 1_000, 25: 26_000, 50: 51_000, 99: 51_000}, 50, 26_000),
        ("steps 1k,5k,20k 30s", {0: 1_000, 29.9: 1_000, 30: 5_000, 99: 20_000}, 90, 8_667),
        ("spike 5k 50k 10s", {9.9: 5_000, 10: 50_000, 19.9: 50_000, 20: 5_000}, 30, 20_000),
        ("sine 5k 20k 60s", {0: 5_000, 15: 12_500, 30: 20_000, 60: 5_000}, 60, 12_500),
    ],
)
def test_each_has_its_rates(
    text: str, rates: dict[float, int], duration_s: float, mean_per_s: float
) -> None:
    profile = parse(text)
    assert {at_s: profile.rate_at(at_s) for at_s in rates} == rates
    assert profile.duration_s == duration_s
    assert profile.mean_per_s == pytest.approx(mean_per_s, rel=1e-3)
    assert str(profile) == text


def test_rates_are_set_when_they_change_or_every_second() -> None:
    assert changes(parse("spike 1k 9k 2500ms"), 99) == [(0, 1_000), (10, 9_000), (12.5, 1_000)]
    assert changes(parse("steps 1k,2k 3s"), 99) == [(0, 1_000), (3, 2_000)]
    # Each second has the rate of its middle, so that as many events become due as on a true slope.
    assert changes(parse("ramp 0 3k 3s"), 99) == [(0, 500), (1, 1_500), (2, 2_500), (3, 3_000)]
    assert len(changes(parse("sine 1k 2k 20s"), 100)) == 100
    assert parse("constant 5k").next_change_s(0) == NEVER_S
    assert parse("spike 5k 50k 8s").peak_s == (10, 18)
    assert parse("sine 5k 50k 8s").peak_s is None  # nothing to recover from


def test_recorded_rates_hold_until_the_next_and_times_count_from_the_first(
    recorded: WriteCsv,
) -> None:
    text = recorded("seconds,rate\n1700000000,500\n1700000010.5,1.5k\n\n1700000020,99.6\n")
    profile = parse(text)
    rates = {0: 500, 10.4: 500, 10.5: 1_500, 20: 100, 500: 100}
    assert {at_s: profile.rate_at(at_s) for at_s in rates} == rates
    assert (profile.duration_s, str(profile)) == (20, text)
    assert changes(profile, 99) == [(0, 500), (10.5, 1_500), (20, 100)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spke 1k 2k 1s", "Did you mean spike?"),
        ("spike 1k 2k", "Write spike BASE PEAK DURATION"),
        ("constant 0", "always 0"),
        ("0,5\n1,many\n", "line 2: 'many'"),
        ("0,5\n\n0,6\n", "line 3: "),
    ],
)
def test_what_is_no_load_is_said_with_an_example_or_the_line_of_its_file(
    recorded: WriteCsv, text: str, says: str
) -> None:
    with pytest.raises(ValueError, match="is not a load profile") as failed:
        parse(recorded(text) if text.endswith("\n") else text)
    assert says in str(failed.value)
