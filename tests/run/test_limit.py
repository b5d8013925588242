"""The search for the limit on a made-up engine: a climb within one run, fresh runs that confirm,
and `limit.json`, which says how far it came."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import engines
from racetrack import interrupts
from racetrack.errors import RacetrackError
from racetrack.limit_record import LimitRecord
from racetrack.results_record import Verdict, VerdictKind
from racetrack.run import limit
from racetrack.run.limit import LimitSearch, in_words
from racetrack.run_record import RunArguments
from racetrack.screen import Screen
from racetrack.settings import Settings, load
from tests.records import run_json
from tests.run.made_up import MadeUpEngine, MadeUpStack

CAPACITY_PER_S = 8_000
FAILED = {"results": None, "outcome": "the broker ended"}


class MadeUp:
    """What there is to see of an engine that keeps up with CAPACITY_PER_S, and of its runs."""

    def __init__(self) -> None:
        self.stack = MadeUpStack()
        self.runs: list[RunArguments] = []
        self.fails: Callable[[RunArguments], bool] = lambda _: False
        self.is_told: Callable[[RunArguments], bool] = lambda _: True
        self.breaks_at = CAPACITY_PER_S * 1_000  # live
        self.offers = CAPACITY_PER_S * 1_000

    def verdict(self, rate: int) -> dict[str, Any]:
        kind = VerdictKind.KEPT_UP if rate <= CAPACITY_PER_S else VerdictKind.FELL_BEHIND
        made: dict[str, Any] = run_json()["results"]["verdict"]
        offered = {**made["throughput"], "handed_over_per_s": min(rate, self.offers)}
        return {**made, "kind": kind, "throughput": offered}

    def run_once(self, _name: str, asked: RunArguments, settings: Settings, *_: object) -> Path:
        self.runs.append(asked)
        folder = settings.logs_folder / f"run{len(self.runs)}"
        folder.mkdir()
        verdict = self.verdict(asked.pageviews_per_s)
        if not self.is_told(asked):
            verdict["kind"] = VerdictKind.UNDECIDED
        told = run_json({"results": {"verdict": verdict}})
        if self.fails(asked):
            told |= FAILED
        (folder / "run.json").write_text(json.dumps(told))
        return folder


Search = Callable[[], LimitRecord]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    made = MadeUp()

    class Session:
        """The run in which the search climbs."""

        def __init__(self, *_: object) -> None: ...

        def start_stack(self) -> None: ...

        def run_demo(self) -> None: ...

        def recover(self, within_s: float) -> None: ...

        def set_rate(self, rate: int) -> None:
            if rate >= made.breaks_at:
                raise RacetrackError("out of memory")

        def watch(self, seconds: float, what: str) -> None: ...

        def stop(self) -> None:
            made.stack.stop(print)

    monkeypatch.setattr(engines, "find_engine", lambda _: MadeUpEngine())
    monkeypatch.setattr(limit, "open_stack", lambda *_: made.stack.as_stack())
    monkeypatch.setattr(limit, "Session", Session)
    monkeypatch.setattr(limit, "run_once", made.run_once)
    monkeypatch.setattr(limit, "curves", SimpleNamespace(read=lambda _: None))
    monkeypatch.setattr(
        limit, "judge", lambda _curves, _from, _to, rate: Verdict(**made.verdict(rate))
    )
    return made


@pytest.fixture
def search(made_up: MadeUp, tmp_path: Path) -> Search:
    settings = load({"LOGS_FOLDER": str(tmp_path)})

    def run() -> LimitRecord:
        guard = interrupts.Guard(print)
        screen = Screen(Console(quiet=True))
        return LimitSearch("made-up", settings, screen, guard, limit.QUICK).run(start=6_000)

    return run


def held(logs: Path) -> dict[str, Any]:
    (file,) = logs.glob("*_UTC_made-up_limit/limit.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_the_limit_is_found_to_five_percent_and_confirmed_by_fresh_runs(
    search: Search, tmp_path: Path
) -> None:
    found = search()
    low, high = found.keeps_up_with_pageviews_per_s, found.falls_behind_at_pageviews_per_s
    assert low and high
    assert low <= CAPACITY_PER_S < high <= low * 1.05 + 1
    told = held(tmp_path)
    assert told["outcome"] == found.outcome == "ok"
    assert [look["pageviews_per_s"] for look in told["climb"]][:2] == [6_000, 12_000]
    ended = [(run["pageviews_per_s"], run["verdict"]) for run in told["confirm"]]
    assert ended.count((low, "kept up")) == 3
    assert ended.count((high, "fell behind")) == 2


def test_the_climb_is_one_run_and_its_stack_is_stopped_before_the_first_fresh_one(
    search: Search, made_up: MadeUp, tmp_path: Path
) -> None:
    search()
    assert len(list(tmp_path.glob("*_UTC_made-up_climb"))) == 1
    assert made_up.stack.did == [("stop", "all")]


def test_each_fresh_run_warms_up_as_the_pace_says(search: Search, made_up: MadeUp) -> None:
    search()
    asked = {(run.warm_up_s, run.wait_s, run.samples) for run in made_up.runs}
    pace = limit.QUICK
    assert asked == {(pace.warm_up_s, pace.confirm_settle_s, pace.confirm_samples)}


def test_what_does_not_survive_the_climb_is_looked_at_in_fresh_runs(
    search: Search, made_up: MadeUp
) -> None:
    made_up.breaks_at = 12_000
    assert search().outcome == "ok"
    assert 12_000 in [run.pageviews_per_s for run in made_up.runs]


def test_a_run_that_does_not_decide_is_made_again_as_long_as_may_be(
    search: Search, made_up: MadeUp
) -> None:
    made_up.is_told = lambda asked: asked.samples == limit.MOST_SAMPLES
    assert search().outcome == "ok"
    samples = [run.samples for run in made_up.runs]
    assert samples[0] == limit.QUICK.confirm_samples
    assert set(samples[1:]) == {limit.MOST_SAMPLES}


def test_a_rate_that_was_not_offered_says_nothing_of_the_engine(
    search: Search, made_up: MadeUp
) -> None:
    made_up.offers = 7_000
    found = search()
    assert found.falls_behind_at_pageviews_per_s is None
    assert found.outcome.startswith("generator-bound at ")
    assert in_words(found).startswith("The limit of made-up was not found to 5%: generator-bound")


def test_a_run_that_fails_ends_the_search_and_what_was_found_is_kept(
    search: Search, made_up: MadeUp, tmp_path: Path
) -> None:
    made_up.fails = lambda _: len(made_up.runs) == 3
    with pytest.raises(RacetrackError, match="was to confirm the limit failed: the broker ended"):
        search()
    told = held(tmp_path)
    assert "the broker ended" in told["outcome"]
    assert len(told["confirm"]) == 2
    assert told["climb"]
