"""Tests of `judge` on runs whose truth is known: error rates, and reasons."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.random import Generator

from racetrack.analysis.curves import NAMES, Curve, Curves
from racetrack.analysis.verdict import judge
from racetrack.results.figures import Verdict, VerdictKind
from simulations import synthetic
from simulations.synthetic import START_MS, SyntheticRun

RUNS, SEED = 1_000, 2022
FALSE_AT_MOST = 0.01
Make = Callable[[Generator], tuple[SyntheticRun, Curves]]


@dataclass(frozen=True)
class Truth:
    """A kind of run: a function that makes such runs, the verdicts that are right, and the shares
    of runs that must be decided at least and at most."""

    make: Make
    right: frozenset[VerdictKind]
    decided_at_least: float = 0.0
    decided_at_most: float = 1.0


def always(run: SyntheticRun) -> Make:
    return lambda rng: (run, synthetic.curves(run, rng))


def pause_and_catch_up(rng: Generator) -> tuple[SyntheticRun, Curves]:
    """Make a run with a pause of 2 to 5 s and no backlog left at the window's end."""
    pause_ms = rng.uniform(2_000, 5_000)
    run = SyntheticRun(pause_at_ms=rng.uniform(0, 29_000 - 2 * pause_ms), pause_ms=pause_ms)
    return run, synthetic.curves(run, rng)


def pause_cut_off(rng: Generator) -> tuple[SyntheticRun, Curves]:
    """Make a run that ends during a pause of 5 s, so that it is unknown if the engine catches
    up."""
    run = SyntheticRun(pause_at_ms=rng.uniform(25_500, 27_500), pause_ms=5_000)
    return run, synthetic.curves(run, rng)


def slow_cycle(window_s: float) -> Make:
    """Make runs with an update every 9 to 20 s: too few for a verdict."""

    def make(rng: Generator) -> tuple[SyntheticRun, Curves]:
        cycle_ms = rng.uniform(9_000, 20_000)
        run = SyntheticRun(window_s=window_s, cycle_ms=cycle_ms, warm_up_ms=60_000)
        return run, synthetic.curves(run, rng)

    return make


def silent_throughout(rng: Generator) -> tuple[SyntheticRun, Curves]:
    """Make a run without updates from shortly before the window until up to 5 s after it."""
    before_ms, after_ms = rng.uniform(0, 5_000, 2)
    run = SyntheticRun(
        warm_up_ms=30_000,
        pause_at_ms=-before_ms,
        pause_ms=before_ms + 30_000 + after_ms,
        recorded_after_ms=15_000,
    )
    return run, synthetic.curves(run, rng)


def stalled(latest_ms: float) -> Make:
    def make(rng: Generator) -> tuple[SyntheticRun, Curves]:
        at_ms = rng.uniform(0, latest_ms)
        partition = int(rng.integers(16))
        run = SyntheticRun(partitions=16, stalled_partition=partition, stalled_at_ms=at_ms)
        return run, synthetic.curves(run, rng)

    return make


def late(which: str) -> Make:
    """Make runs whose generator (or broker) either loses 2 to 10 %, or loses nothing but is 2 s
    late."""

    def make(rng: Generator) -> tuple[SyntheticRun, Curves]:
        leak, delay = (rng.uniform(0.02, 0.1), 2.0) if rng.random() < 0.5 else (0.0, 2_000.0)
        if which == "generator":
            run = SyntheticRun(generator_leak=leak, generator_delay_ms=delay)
        else:
            run = SyntheticRun(broker_leak=leak, broker_delay_ms=delay)
        return run, synthetic.curves(run, rng)

    return make


def clock_set_back(run: SyntheticRun) -> Make:
    """Make runs whose clock is set back by 0.15 to 5 s, in the window or up to 4 s before."""

    def make(rng: Generator) -> tuple[SyntheticRun, Curves]:
        at_ms = START_MS + rng.uniform(-4_000, 30_000)
        recorded = synthetic.set_back(synthetic.curves(run, rng), at_ms, rng.uniform(150, 5_000))
        return run, recorded

    return make


SAWTOOTH = SyntheticRun(cycle_ms=100, slow_partition_cycle_ms=1_000)
KEPT, FELL = frozenset({VerdictKind.KEPT_UP}), frozenset({VerdictKind.FELL_BEHIND})
KINDS = {
    "steady": Truth(always(SyntheticRun()), KEPT, decided_at_least=0.95),
    "steady, 10 s": Truth(always(SyntheticRun(window_s=10)), KEPT, decided_at_most=0.2),
    "sawtooth of a 1 s cycle": Truth(always(SAWTOOTH), KEPT, decided_at_least=0.9),
    "leak of 2 %": Truth(always(SyntheticRun(leak=0.02)), FELL, decided_at_least=0.95),
    "leak of 5 %": Truth(always(SyntheticRun(leak=0.05)), FELL, decided_at_least=0.95),
    "one of 16 stalled": Truth(stalled(0), FELL, decided_at_least=0.95),
    "one of 16 stalls later": Truth(stalled(27_000), FELL),
    "pause and catch-up": Truth(pause_and_catch_up, KEPT),
    "pause, cut off": Truth(pause_cut_off, frozenset()),
    "update every 9-20 s, 10 s": Truth(slow_cycle(10), frozenset()),
    "update every 9-20 s, 30 s": Truth(slow_cycle(30), frozenset()),
    "silent throughout": Truth(silent_throughout, FELL, decided_at_least=0.95),
    "generator late": Truth(
        late("generator"), frozenset({VerdictKind.GENERATOR_BOUND}), decided_at_least=0.95
    ),
    "broker late": Truth(
        late("broker"), frozenset({VerdictKind.BROKER_BOUND}), decided_at_least=0.95
    ),
    "clock set back, steady": Truth(clock_set_back(SyntheticRun()), KEPT),
    "clock set back, leak of 5 %": Truth(clock_set_back(SyntheticRun(leak=0.05)), FELL),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_false_verdicts(name: str) -> None:
    """Fail if more than 1 % of the verdicts on a kind of run are false; `pytest -s` prints the
    counts."""
    truth, rng = KINDS[name], np.random.default_rng(SEED)
    found: Counter[VerdictKind] = Counter()
    for _ in range(RUNS):
        run, recorded = truth.make(rng)
        found[judge(recorded, *run.window, requested_per_s=run.rate_per_s).kind] += 1
    undecided = found[VerdictKind.UNDECIDED]
    false = RUNS - undecided - sum(found[kind] for kind in truth.right)
    print(f"\n| {name} | {' | '.join(str(found[kind]) for kind in VerdictKind)} | {false} |")
    assert false <= FALSE_AT_MOST * RUNS
    assert truth.decided_at_least <= 1 - undecided / RUNS <= truth.decided_at_most


def verdict(run: SyntheticRun, requested_per_s: float | None = None, seed: int = 1) -> Verdict:
    recorded = synthetic.curves(run, np.random.default_rng(seed))
    return judge(recorded, *run.window, requested_per_s=requested_per_s)


def test_behind_but_not_falling_further_is_kept_up() -> None:
    found = verdict(SyntheticRun(delay_ms=5_000))
    assert found.kind is VerdictKind.KEPT_UP
    assert found.measured
    assert found.measured.processing_lag_p50_ms == pytest.approx(5_000, abs=100)
    assert found.measured.lag_p50_ms == pytest.approx(5_500, abs=100)
    assert found.measured.engine.p50_ms == pytest.approx(5_000, abs=150)
    slope = found.measured.slope
    assert found.reason == (
        f"Kept up: lag is steady (grows by {slope.low_pct:.2f} to {slope.high_pct:.2f} % of real"
        " time; limit 1 %), judged over 30 s"
    ).replace("-", "−")


def test_the_numbers_of_a_leak() -> None:
    found = verdict(SyntheticRun(leak=0.05), requested_per_s=4_000)
    assert found.measured
    slope = found.measured.slope
    assert slope.low_pct < 5 < slope.high_pct
    assert slope.low_pct < slope.pct < slope.high_pct
    assert found.throughput.processed_per_s == pytest.approx(4_000 * 0.95, rel=0.01)
    lag = found.measured
    assert lag.lag_max_ms > lag.processing_lag_max_ms > lag.processing_lag_p50_ms
    assert found.updates == pytest.approx(30, abs=1)
    assert found.shortest_window_s is None
    assert re.match(r"Fell behind: lag grows by 4\.\d+ to 5\.\d+ % of real time", found.reason)
    assert "(limit 1 %), judged over 30 s" in found.reason


def test_a_pause_is_in_the_worst_that_a_reader_saw() -> None:
    # After the pause, the backlog is worked off at once, so no update shows a lag.
    found = verdict(SyntheticRun(pause_at_ms=10_000, pause_ms=1_500, catch_up_factor=1_000))
    assert found.measured
    assert found.measured.processing_lag_max_ms < 1_000
    assert found.measured.lag_max_ms > 2_000


def test_a_rate_that_was_not_offered_is_no_success() -> None:
    found = verdict(SyntheticRun(), requested_per_s=5_000)
    assert found.kind is VerdictKind.GENERATOR_BOUND
    assert "handed over 4,000 of 5,000" in found.reason


def test_falling_behind_less_than_was_asked_is_still_falling_behind() -> None:
    found = verdict(SyntheticRun(leak=0.3), requested_per_s=5_000)
    assert found.kind is VerdictKind.FELL_BEHIND
    assert any("less than the requested rate" in warning for warning in found.warnings)


def test_a_generator_that_waits_for_the_broker_is_the_brokers_fault() -> None:
    found = verdict(SyntheticRun(generator_leak=0.05, broker_delay_ms=1_500))
    assert found.kind is VerdictKind.BROKER_BOUND


def test_a_silent_engine_fell_behind_with_a_warning() -> None:
    found = verdict(SyntheticRun(pause_at_ms=1_000, pause_ms=60_000))
    assert found.kind is VerdictKind.FELL_BEHIND
    assert any("longest gap between two updates" in warning for warning in found.warnings)


def test_a_generator_that_stood_still_is_named_before_the_engine() -> None:
    """All its processes stood still for 3 s, so it reported nothing and the engine got nothing."""
    began_ms, ended_ms = START_MS + 10_000, START_MS + 13_000
    recorded = synthetic.curves(SyntheticRun(), np.random.default_rng(SEED))

    def stood_still(curve: Curve) -> Curve:
        kept = (curve.at_ms <= began_ms) | (curve.at_ms >= ended_ms)
        return Curve(curve.at_ms[kept], curve.count[kept])

    names = ("due", "handed_over", "processed")
    found = judge(synthetic.changed(recorded, stood_still, *names), *SyntheticRun().window)
    generator, engine = found.warnings
    assert re.search(r"generator was up to (2\.9|3\.\d) s late", generator)
    assert "longest gap between two updates" in engine


SILENT = SyntheticRun(
    warm_up_ms=30_000, pause_at_ms=-2_000, pause_ms=35_000, recorded_after_ms=15_000, noise_ms=1
)


def test_no_update_in_the_window_but_one_later_is_falling_behind() -> None:
    found = verdict(SILENT)
    assert (found.kind, found.updates) == (VerdictKind.FELL_BEHIND, 0)
    assert found.next_update_s and 2.9 < found.next_update_s < 4.1
    assert "Fell behind: no update of the engine in 30 s" in found.reason
    assert re.search(r"oldest uncounted event was 3[2-4]\.\d s old", found.reason)
    assert f"its next update came {found.next_update_s:.1f} s later" in found.reason
    # The engine's count at the window's end is unknown.
    assert found.throughput.processed_per_s is None
    assert found.measured and found.measured.lag_max_ms > 30_000


def test_no_update_in_the_window_is_falling_behind_if_the_recording_ends_there() -> None:
    """This is so in a capacity search, which judges a rate as soon as its window ends."""
    found = verdict(replace(SILENT, recorded_after_ms=100))
    assert (found.kind, found.next_update_s) == (VerdictKind.FELL_BEHIND, None)
    assert found.reason.endswith("s old")


def test_an_engine_whose_updates_end_is_not_judged() -> None:
    found = verdict(replace(SILENT, pause_ms=90_000, recorded_after_ms=31_000))
    assert (found.kind, found.measured) == (VerdictKind.UNDECIDED, None)
    assert "nor in the 31 s after them: it has ended or hangs, or" in found.reason


@pytest.mark.slow
@pytest.mark.parametrize("window_s", [10.0, 30.0])
@pytest.mark.parametrize("delay_ms", [500.0, 40_000.0])
def test_a_long_update_interval_is_not_falling_behind(window_s: float, delay_ms: float) -> None:
    run = SyntheticRun(window_s=window_s, cycle_ms=16_000, warm_up_ms=90_000, delay_ms=delay_ms)
    for seed in range(20):
        found = verdict(run, seed=seed)
        assert found.kind is VerdictKind.UNDECIDED
        # A verdict needs a window of at least eight update intervals.
        assert found.shortest_window_s in range(124, 134)


def test_a_long_update_interval_does_not_explain_a_lag_of_many_cycles() -> None:
    """The engine is 40 s behind. It normally updates every 8 s, but makes no update in the whole
    window of 12 s. One missing update would explain a lag of about one cycle."""
    run = SyntheticRun(window_s=12, cycle_ms=8_000, delay_ms=40_000, warm_up_ms=90_000, noise_ms=1)
    silent = replace(run, pause_at_ms=-500, pause_ms=14_000, recorded_after_ms=5_000)
    found = verdict(silent)
    assert (found.kind, found.updates) == (VerdictKind.FELL_BEHIND, 0)


@pytest.mark.slow
def test_an_undecided_run_suggests_a_longer_window() -> None:
    short = next(
        v for v in (verdict(SyntheticRun(window_s=10), seed=s) for s in range(9)) if v.measured
    )
    assert short.kind is VerdictKind.UNDECIDED
    assert short.shortest_window_s
    assert 15 <= short.shortest_window_s <= 60
    longer = [
        verdict(SyntheticRun(window_s=short.shortest_window_s), seed=seed).kind
        for seed in range(20)
    ]
    assert longer.count(VerdictKind.KEPT_UP) >= 16


def test_too_few_updates() -> None:
    found = verdict(SyntheticRun(window_s=5))
    assert (found.kind, found.measured, found.shortest_window_s) == (
        VerdictKind.UNDECIDED,
        None,
        30,
    )
    assert "too few updates" in found.reason


def changed(change: Callable[[Curve], Curve], *names: str) -> Callable[[Curves], Curves]:
    return lambda recorded: synthetic.changed(recorded, change, *names)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (changed(lambda c: Curve(c.at_ms, 0 * c.count), *NAMES), "No event was due"),
        (changed(lambda c: Curve(c.at_ms, 2 * c.count), "processed"), "events twice"),
        (changed(lambda c: Curve(c.at_ms - 5_000, c.count), "processed"), "before they were due"),
        (changed(lambda c: Curve(c.at_ms, c.count + 10**6), "due"), "before the recording began"),
        (changed(lambda c: Curve(c.at_ms[:20], c.count[:20]), "due"), "recording ends before"),
        (lambda recorded: synthetic.set_back(recorded, START_MS - 2_000, 700), "set back by"),
    ],
)
def test_useless_records_are_undecided(spoil: Callable[[Curves], Curves], expected: str) -> None:
    recorded = spoil(synthetic.curves(SyntheticRun(), np.random.default_rng(1)))
    found = judge(recorded, *SyntheticRun().window)
    assert (found.kind, found.measured) == (VerdictKind.UNDECIDED, None)
    assert expected in found.reason


def test_a_clock_set_back_is_warned_of_and_only_the_time_before_it_is_judged() -> None:
    recorded = synthetic.curves(SyntheticRun(leak=0.05), np.random.default_rng(1))
    found = judge(synthetic.set_back(recorded, START_MS + 25_000, 2_000), *SyntheticRun().window)
    assert found.kind is VerdictKind.FELL_BEHIND
    assert found.window_s == pytest.approx(23, abs=0.2)
    assert any("set back by" in warning for warning in found.warnings)


def test_a_recording_that_ends_early_is_warned_of() -> None:
    recorded = synthetic.curves(SyntheticRun(), np.random.default_rng(1))
    found = judge(recorded, START_MS, START_MS + 40_000)
    assert any("recording ends" in warning for warning in found.warnings)
