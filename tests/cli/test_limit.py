"""`./race limit`: how long it may take is said first, and exit code 1 if time was too short.
Searches that are repeated go on where one fails, and say at the end how far they agree."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.errors import RacetrackError, UsageError
from racetrack.results.run import Machine, Window
from racetrack.results.search import (
    Capacity,
    LimitRecord,
    LimitRun,
    SaturationWindow,
    SustainableRate,
)
from racetrack.run import capacity_search
from racetrack.run.trials import PhaseDurations
from tests.some_engines import EXAMPLE, TWO


def worked(
    per_s: float, counted_before: int, warm_up_s: float = 60.4, *, is_warm: bool = True
) -> LimitRun:
    """A run whose work was measured after so many pageviews."""
    seen = SaturationWindow(
        window=Window(start_ms=0, end_ms=120_000),
        counted_before=counted_before,
        batches_per_s=(per_s - 100, per_s + 100),
        backlog_min_s=9,
        backlog_max_s=21,
        idle_share=0,
        handed_over_per_s=per_s,
    )
    return LimitRun(tag="gone", saturation=(seen,), warm_up_s=warm_up_s, is_warm=is_warm)


@pytest.mark.parametrize(
    ("typed", "bounds_ms"),
    [
        ([], (2_000.0, 5_000.0)),
        (["--bound", "1"], (1_000.0,)),
        (["--bound", "2s", "--bound", "500ms", "--bound", "2"], (500.0, 2_000.0)),
    ],
)
def test_bounds_are_those_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, typed: list[str], bounds_ms: tuple[float, ...]
) -> None:
    def search(*given: object) -> None:
        *_, pace, _start_per_s, _of = given
        assert isinstance(pace, PhaseDurations)
        assert pace.bounds_ms == bounds_ms
        raise UsageError("It was asked.")

    monkeypatch.setattr(capacity_search, "CapacitySearch", search)
    result = CliRunner().invoke(cli.race, ["limit", EXAMPLE, *typed])
    assert "It was asked." in result.output


@pytest.mark.parametrize(
    ("outcome", "code"), [("ok", 0), ("no time for more", 1), ("Void: others.", 5)]
)
def test_the_search_goes_as_asked_and_its_numbers_are_said(
    monkeypatch: pytest.MonkeyPatch, outcome: str, code: int
) -> None:
    began: list[tuple[str, float, float, int, str]] = []

    class Search:
        """Finds this at once."""

        folder = Path("logs/found")

        def __init__(self, engine: str, *given: object) -> None:
            *_, pace, start_per_s, of = given
            assert (
                isinstance(pace, PhaseDurations)
                and isinstance(start_per_s, int)
                and isinstance(of, str)
            )
            began.append((engine, pace.warm_up_most_s, pace.within_s, start_per_s, of))

        def run(self) -> LimitRecord:
            self.record = LimitRecord(
                engine=EXAMPLE,
                runtime="native",
                machine=Machine(),
                outcome=outcome,
                capacity=Capacity(per_s=20_000, low=19_000, high=21_000),
                runs=(
                    worked(20_500, 1_000_000, 120.2, is_warm=False),
                    worked(19_500, 9_040_000),
                ),
                sustainable=(
                    SustainableRate(bound_ms=2_000, held_per_s=18_000, failed_per_s=19_000),
                ),
            )
            return self.record

    monkeypatch.setattr(capacity_search, "CapacitySearch", Search)
    typed = ["limit", EXAMPLE, "--start", "48k", "--warm-up", "3m", "--within", "25m"]
    result = CliRunner().invoke(cli.race, typed)
    assert result.exit_code == code, result.output
    assert began == [(EXAMPLE, 180.0, 1_500.0, 48_000, "pageviews")]
    said = result.output.splitlines()
    assert said[0].startswith("This takes 25 minutes at most")
    assert (f"{EXAMPLE}: {outcome}" in said) == (code != 0)
    assert said[-4:] == [
        f"{EXAMPLE}: capacity 20,000 (19,000 to 21,000) pageviews/s",
        (
            f"{EXAMPLE}: measured 20,500/s after 1.0 million (CPU per event not flat after 120 s"
            " of warm-up), 19,500/s after 9.0 million pageviews"
        ),
        f"{EXAMPLE}: lag p99 within 2 s at 18,000 (not 19,000)",
        "  logs/found",
    ]


def test_engines_take_turns_and_say_in_the_end_how_far_their_searches_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = TWO
    found: dict[str, Iterator[float | RacetrackError]] = {
        one: iter([98, 102, 100]),
        other: iter([50, RacetrackError("Its engine ended."), 60]),
    }
    order: list[str] = []

    class Search:
        """Finds what stands above."""

        folder = Path("logs/found")

        def __init__(self, engine: str, *_: object) -> None:
            order.append(engine)
            self.record = LimitRecord(engine=engine, runtime="native", machine=Machine())

        def run(self) -> LimitRecord:
            per_s = next(found[self.record.engine])
            if isinstance(per_s, RacetrackError):
                raise per_s
            self.record.capacity = Capacity(per_s=per_s, low=per_s, high=per_s)
            self.record.outcome = "ok"
            return self.record

    monkeypatch.setattr(capacity_search, "CapacitySearch", Search)
    result = CliRunner().invoke(cli.race, ["limit", one, other, "--repeat", "3"])
    assert result.exit_code == 1, result.output
    assert order == [one, other] * 3
    said = result.output.splitlines()
    assert said[0].startswith("Each of 6 searches takes 15 minutes at most")
    assert "Error: Its engine ended." in said
    assert f"== search 6 of 6: {other}" in said
    assert [line.split("; mean")[0] for line in said[-2:]] == [
        f"{one}: 3 searches: capacity 98 to 102, half-range 2.0 % of midpoint",
        f"{other}: 2 searches: capacity 50 to 60, half-range 9.1 % of midpoint",
    ]


def test_no_engine_has_its_turn_before_all_are_known_to_be_searchable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capacity_search, "CapacitySearch", pytest.fail)
    result = CliRunner().invoke(cli.race, ["limit", EXAMPLE, "--of", "unheard of"])
    assert result.exit_code == 2
    assert "unheard of: the workload" in result.output


def test_a_search_of_25_seconds_is_refused_since_25_used_to_be_minutes() -> None:
    result = CliRunner().invoke(cli.race, ["limit", EXAMPLE, "--within", "25"])
    assert result.exit_code == 2
    assert "'25' is shorter than 60 s; minutes are written as 25m" in result.output
