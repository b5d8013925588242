"""Tests of `decide`, which judges whether an engine keeps up: error rates, and the same verdict
during a run and afterwards."""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from racetrack.analysis.curves import NAMES, Curve, Curves
from racetrack.analysis.verdict import decide, decide_together, looks_ms
from racetrack.results.figures import Verdict, VerdictKind
from simulations import synthetic, waves
from simulations import verdicts as kinds
from simulations.synthetic import START_MS, SyntheticRun, Waves
from simulations.verdicts import END_MS, KINDS, RATE_PER_S, SECONDS

# `python -m simulations.verdicts 1000` makes simulations/verdicts.csv, from more runs.
RUNS, FALSE_AT_MOST = 30, 0.01
RNG = np.random.default_rng


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_false_verdicts(name: str) -> None:
    found = kinds.count_verdicts(name, RUNS)
    print(f"\n{found.row(name)}")
    assert found.false <= FALSE_AT_MOST * RUNS


def verdict(run: SyntheticRun, seconds: float = SECONDS, first_s: float = 10) -> Verdict:
    recorded = synthetic.curves(replace(run, window_s=SECONDS), RNG(1))
    until_ms, first_ms = START_MS + 1000 * seconds, START_MS + 1000 * first_s
    return decide(recorded, START_MS, until_ms, run.rate_per_s, first_ms=first_ms)


def seconds_until(found: Verdict) -> float:
    assert found.until_ms
    return (found.until_ms - START_MS) / 1000


def line(at_s: list[float], added_ms: list[float]) -> Waves:
    return Waves(1000 * np.array(at_s, dtype=float), np.array(added_ms, dtype=float))


def test_it_looks_at_set_times_from_the_first_one_on() -> None:
    def looks(first_s: float, until_s: float) -> list[float]:
        return [at_ms / 1000 for at_ms in looks_ms(0, 1000 * first_s, 1000 * until_s)]

    assert looks(10, 60) == [10, 15, 20, 30, 45, 60]
    assert looks(31.5, 130) == [31.5, 45, 60, 90, 120]
    assert looks(150, 300) == [150, 180, 240]
    assert looks(30, 29) == []
    early = verdict(SyntheticRun(), seconds=9)
    assert early.kind is VerdictKind.UNDECIDED
    assert "the first look is 10 s after" in early.reason


def test_a_low_lag_decides_at_once_and_one_that_does_not_grow_at_any_level() -> None:
    found = verdict(SyntheticRun(cycle_ms=100, delay_ms=20, noise_ms=5))
    assert (found.kind, seconds_until(found)) == (VerdictKind.KEPT_UP, 10)
    assert re.search(r"lag stays low \(at most \d+ ms 10 s after the rate was set", found.reason)
    assert found.shortest_window_s is None
    high = verdict(SyntheticRun(delay_ms=20_000, warm_up_ms=30_000))
    assert high.kind is VerdictKind.KEPT_UP
    assert high.reason.startswith("Kept up: lag is steady (grows by ")


@pytest.mark.slow
def test_the_readmes_example_decides_in_99_of_100_runs() -> None:
    found = kinds.count_verdicts("steady at 135 ms, noise 40 ms, first look after 30 s", 100)
    assert found.found[VerdictKind.KEPT_UP] >= 99
    assert max(found.after_s) <= 45


def between(from_ms: float, until_ms: float = math.inf) -> Callable[[Curve], Curve]:
    """Return a function that leaves of curves what was recorded in this time."""

    def cut(curve: Curve) -> Curve:
        there = (curve.at_ms >= from_ms) & (curve.at_ms <= until_ms)
        return Curve(curve.at_ms[there], curve.count[there])

    return cut


def test_an_engine_that_begins_behind_the_recording_is_judged_from_where_it_is_known() -> None:
    run = SyntheticRun(window_s=120, cycle_ms=100, delay_ms=3_000, noise_ms=20)
    begun_ms = START_MS - 500
    measured = synthetic.changed(synthetic.curves(run, RNG(3)), between(begun_ms), "due")
    found = decide(measured, START_MS, START_MS + 1000 * run.window_s)
    assert found.kind is VerdictKind.KEPT_UP
    assert found.from_ms >= begun_ms + run.delay_ms


def backlog_of_a_start(caught_up_ms: float) -> Curves:
    """Return the curves of an engine that updates every 5 s, has counted nothing before
    `caught_up_ms` after the rate was set, and whose recording began half a second before that."""
    run = SyntheticRun(window_s=120, cycle_ms=5_000, delay_ms=40, noise_ms=5, warm_up_ms=60_000)
    measured = synthetic.curves(run, RNG(5))
    measured = synthetic.changed(
        measured, between(START_MS - 500), "due", "handed_over", "published"
    )
    return synthetic.changed(measured, between(START_MS + caught_up_ms), "processed")


def test_the_backlog_of_the_start_is_in_no_figure_of_the_judged_window() -> None:
    found = decide(backlog_of_a_start(4_000), START_MS, START_MS + 120_000)
    assert found.kind is VerdictKind.KEPT_UP
    assert found.measured and found.measured.lag_max_ms < 6_000
    assert found.from_ms >= START_MS + 4_000


def test_the_count_and_the_views_are_judged_over_one_window() -> None:
    count = synthetic.curves(SyntheticRun(window_s=120, cycle_ms=100, delay_ms=20), RNG(1))
    view = backlog_of_a_start(11_000)
    until_ms = START_MS + 120_000
    together = decide_together([count, view], START_MS, until_ms)
    assert {verdict.kind for verdict in together} == {VerdictKind.KEPT_UP}
    assert len({(verdict.from_ms, verdict.until_ms) for verdict in together}) == 1
    assert together[0].from_ms >= START_MS + 11_000 > decide(count, START_MS, until_ms).from_ms


def test_one_side_of_a_wave_is_not_falling_behind() -> None:
    """Lag rises by 3 % of real time for 60 s, then falls for 60 s."""
    wave = SyntheticRun(waves=line([-5, 0, 60, 120], [0, 0, 1_800, 0]), noise_ms=10)
    for seconds in (30, 45, 60, 120):
        assert verdict(wave, seconds).kind is VerdictKind.UNDECIDED
    early = verdict(wave, 30)
    assert early.measured and early.measured.slope.low_pct > 1
    assert "that may be a passing wave" in early.reason


def test_a_rise_that_no_pause_leaves_is_falling_behind_at_once() -> None:
    found = verdict(SyntheticRun(partitions=16, stalled_partition=3, stalled_at_ms=0))
    assert found.kind is VerdictKind.FELL_BEHIND
    assert seconds_until(found) <= 15


def test_a_falling_lag_may_be_about_to_rise() -> None:
    """The engine catches up for 30 s; then its lag grows by 5 % of real time."""
    run = SyntheticRun(waves=line([-5, 0, 30, 120], [3_000, 3_000, 0, 4_500]), noise_ms=10)
    assert verdict(run, 20).kind is VerdictKind.UNDECIDED
    assert "lag is still falling" in verdict(run, 20).reason
    found = verdict(run)
    assert found.kind is VerdictKind.FELL_BEHIND
    assert found.from_ms and (found.from_ms - START_MS) / 1000 == pytest.approx(32, abs=6)


def test_more_than_a_falling_lag_is_asked_for_only_for_a_while() -> None:
    found = verdict(SyntheticRun(waves=line([-5, 0, 200], [20_000, 20_000, 0]), warm_up_ms=60_000))
    assert (found.kind, seconds_until(found)) == (VerdictKind.KEPT_UP, 120)


def test_a_long_update_interval_is_not_judged_by_a_few_updates() -> None:
    found = verdict(SyntheticRun(cycle_ms=16_000, warm_up_ms=90_000), seconds=110)
    assert found.kind is VerdictKind.UNDECIDED
    assert found.measured is None or "the engine updates every" in found.reason


def test_an_engine_whose_updates_end_is_not_judged_afterwards() -> None:
    run = SyntheticRun(warm_up_ms=30_000, pause_at_ms=-2_000, pause_ms=200_000)
    assert verdict(run, 30, first_s=30).kind is VerdictKind.UNDECIDED
    recorded = synthetic.curves(replace(run, window_s=30), RNG(1))
    found = decide(recorded, START_MS, START_MS + 30_000, first_ms=START_MS + 30_000)
    assert found.kind is VerdictKind.FELL_BEHIND  # the recording ends in the pause


@pytest.mark.parametrize("name", ["steady", "leak of 5 %", "AR(1) noise, tau 5 s"])
def test_the_verdict_is_the_same_live_and_afterwards(name: str) -> None:
    """A run in progress is judged as soon as the rows up to that time are written; here, after the
    next update."""
    rng = RNG(3)
    for _ in range(3):
        _, found = KINDS[name].make(rng)
        afterwards = decide(found, START_MS, END_MS, RATE_PER_S)
        for at_ms in looks_ms(START_MS, START_MS + 10_000, END_MS):
            known = synthetic.changed(found, between(0, at_ms + 1_100), *NAMES)
            live = decide(known, START_MS, at_ms, RATE_PER_S)
            if live.kind is not VerdictKind.UNDECIDED:
                break
        # Only the next update may differ: during the run, it may not have come yet.
        unknown = {"next_update_s": None}
        assert live.model_copy(update=unknown) == afterwards.model_copy(update=unknown)


def test_waves_are_bounded() -> None:
    rng = RNG(1)
    tooth = waves.sawtooth(20, 1_000, SECONDS, rng).added_ms
    assert 0 <= tooth.min() < 10 and 990 < tooth.max() <= 1_000
    noise = waves.autoregressive(5, 200, 20_000, rng)
    assert noise.added_ms.std() == pytest.approx(200, rel=0.1)
    apart = int(5_000 / waves.STEP_MS)
    alike = np.corrcoef(noise.added_ms[:-apart], noise.added_ms[apart:])[0, 1]
    assert alike == pytest.approx(math.exp(-1), abs=0.1)
    free, full = (waves.queue(load, 5_000, RNG(1)).added_ms for load in (0.8, 0.9))
    assert free.min() == 0 and full.mean() > 2 * free.mean()
    paused = waves.pauses(SECONDS, rng)
    assert all(2_000 <= to - since <= 5_000 for since, to in paused.silent_ms)
    assert paused.added_ms.max() <= 5_100
