"""`./race limit`: its time limit, its result and its exit codes. Repeated searches continue where
one fails, and print at the end how far they agree."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from racetrack.errors import RacetrackError
from racetrack.results.json_file import write_json
from racetrack.results.run import Machine
from racetrack.results.search import Capacity, LimitRecord, SearchArguments, SustainableRate
from racetrack.run.trials import PhaseDurations
from tests.cli.conftest import invoke
from tests.some_engines import EXAMPLE, TWO

Outcome = tuple[float, str] | RacetrackError
ARGUMENTS = SearchArguments(start_per_s=1_000, warm_up_s=120, within_s=900, bounds_ms=(500,))
SUSTAINABLE = (SustainableRate(bound_ms=500, sustained_per_s=9_000, failed_per_s=10_000),)


class Searches:
    """Creates capacity searches: each ends with the next of the outcomes."""

    def __init__(self, outcomes: Mapping[str, Sequence[Outcome]]) -> None:
        self._folder = TemporaryDirectory()
        self._outcomes = {engine: iter(of) for engine, of in outcomes.items()}
        self.began: list[tuple[str, PhaseDurations, int | None]] = []

    def __call__(self, engine: str, *given: object) -> "Search":
        *_, durations, start_per_s = given
        assert isinstance(durations, PhaseDurations)
        assert start_per_s is None or isinstance(start_per_s, int)
        self.began.append((engine, durations, start_per_s))
        folder = Path(self._folder.name) / f"search_{len(self.began)}"
        return Search(engine, self._outcomes[engine], folder)


class Search:
    def __init__(self, engine: str, outcomes: Iterator[Outcome], folder: Path) -> None:
        self._outcomes = outcomes
        self.folder = folder
        self.record = LimitRecord(
            engine=engine, runtime="native", machine=Machine(), arguments=ARGUMENTS
        )

    def run(self) -> LimitRecord:
        outcome = next(self._outcomes)
        if not isinstance(outcome, RacetrackError):
            per_s, self.record.outcome = outcome
            self.record.capacity = Capacity(per_s=per_s, low=0.95 * per_s, high=1.05 * per_s)
            self.record.sustainable = SUSTAINABLE
        self.folder.mkdir()
        write_json(self.folder / "limit.json", self.record.model_dump(mode="json"))
        if isinstance(outcome, RacetrackError):
            raise outcome
        return self.record


@pytest.mark.parametrize(
    ("typed", "bounds_ms"),
    [
        ("", (2_000.0, 5_000.0)),
        ("--bound 1", (1_000.0,)),
        ("--bound 2s --bound 500ms --bound 2", (500.0, 2_000.0)),
    ],
)
def test_the_options_reach_the_search(typed: str, bounds_ms: tuple[float, ...]) -> None:
    search = Searches({EXAMPLE: [(20_000, "ok")]})
    options = f"--start 48k --warm-up 3m --within 25m {typed}"
    result = invoke(f"limit {EXAMPLE} {options}", make_search=search)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("This takes 25 minutes at most")
    ((engine, durations, start_per_s),) = search.began
    assert (engine, start_per_s) == (EXAMPLE, 48_000)
    assert (durations.warm_up_most_s, durations.within_s) == (180, 1_500)
    assert durations.bounds_ms == bounds_ms


@pytest.mark.parametrize(
    ("outcome", "code"), [("ok", 0), ("no time for more", 1), ("Void: others.", 5)]
)
def test_the_result_is_printed_and_its_outcome_is_the_exit_code(outcome: str, code: int) -> None:
    search = Searches({EXAMPLE: [(20_000, outcome)]})
    result = invoke(f"limit {EXAMPLE}", make_search=search)
    assert result.exit_code == code, result.output
    lines = result.output.splitlines()
    assert (f"{EXAMPLE}: {outcome}" in lines) == (code != 0)
    assert f"{EXAMPLE}: capacity 20,000 (19,000 to 21,000) pageviews/s" in lines
    assert lines[-1].endswith("/search_1")


@pytest.mark.parametrize(("bound_per_s", "code"), [(15_000, 0), (25_000, 6)])
def test_a_condition_that_holds_sets_the_exit_code(bound_per_s: int, code: int) -> None:
    search = Searches({EXAMPLE: [(20_000, "ok")]})
    condition = f"capacity_per_s<{bound_per_s}"
    result = invoke(f"limit {EXAMPLE} --fail-if '{condition}'", make_search=search)
    assert result.exit_code == code, result.output
    fails = f"Fails --fail-if '{condition}': {EXAMPLE}: capacity_per_s is " in result.output
    assert fails == bool(code)


def test_the_rate_within_a_bound_of_the_user_is_recorded() -> None:
    search = Searches({EXAMPLE: [(20_000, "ok")]})
    result = invoke(f"limit {EXAMPLE} --bound 500ms --json -", make_search=search)
    (record,) = json.loads(result.stdout)["records"]
    assert record["sustained_0.5s_per_s"] == 9_000


def test_engines_alternate_and_a_failed_search_ends_only_itself() -> None:
    one, other = TWO
    ended = RacetrackError("Its engine ended.")
    of_one = [(98, "ok"), (102, "ok"), (100, "ok")]
    search = Searches({one: of_one, other: [(50, "ok"), ended, (60, "ok")]})
    result = invoke(f"limit {one} {other} --repeat 3", make_search=search)
    assert result.exit_code == 1, result.output
    assert [engine for engine, *_ in search.began] == [one, other] * 3
    lines = result.output.splitlines()
    assert "Error: Its engine ended." in lines
    assert f"`{one}` gets furthest: capacity 100/s" in result.output


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("--of purchases", "No such option"),
        ("--within 25", "'25' is shorter than 60 s; minutes are written as 25m"),
    ],
)
def test_an_impossible_search_is_refused_before_any_begins(typed: str, says: str) -> None:
    search = Searches({})
    result = invoke(f"limit {EXAMPLE} {typed}", make_search=search)
    assert result.exit_code == 2
    assert says in result.output
    assert not search.began
