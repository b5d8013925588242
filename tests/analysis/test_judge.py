"""Tests of `judge` on runs whose truth is known: error rates, and reasons."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator

from racetrack.analysis.curves import NAMES, Curve, Curves
from racetrack.analysis.verdict import judge
from racetrack.results.figures import Verdict, VerdictKind
from simulations import synthetic
from simulations.synthetic import START_MS, SyntheticRun
from simulations.verdicts import FELL, KEPT, KINDS, SEED, Kind, Make, plain, stalled

RUNS, FALSE_AT_MOST = 1_000, 0.01


def paused(is_cut_off: bool) -> Make:
    """Make runs with a pause of 2 to 5 s and no backlog left at the end, or runs that end during a
    pause, so that it is unknown if the engine catches up."""

    def make(rng: Generator) -> tuple[SyntheticRun, Curves]:
        pause_ms = 5_000 if is_cut_off else rng.uniform(2_000, 5_000)
        from_ms, to_ms = (25_500, 27_500) if is_cut_off else (0, 29_000 - 2 * pause_ms)
        return plain(window_s=30, pause_at_ms=rng.uniform(from_ms, to_ms), pause_ms=pause_ms)(rng)

    return make


SILENT = SyntheticRun(
    warm_up_ms=30_000, pause_at_ms=-2_000, pause_ms=35_000, recorded_after_ms=15_000
)
LEAK = SyntheticRun(leak=0.05)


SHORT_KINDS = {
    "steady, 30 s": Kind(plain(window_s=30), KEPT),
    "steady, 10 s": Kind(plain(window_s=10), KEPT),
    "sawtooth of a 1 s cycle": Kind(
        plain(window_s=30, cycle_ms=100, slow_partition_cycle_ms=1_000), KEPT
    ),
    "leak of 2 %, 30 s": Kind(plain(window_s=30, leak=0.02), FELL),
    "leak of 5 %, 30 s": Kind(plain(window_s=30, leak=0.05), FELL),
    "one of 16 stalls later": Kind(stalled(27), FELL),
    "pause and catch-up": Kind(paused(is_cut_off=False), KEPT),
    "pause, cut off": Kind(paused(is_cut_off=True), frozenset()),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("steady, 30 s", 0.95, 1),
        ("steady, 10 s", 0, 0.2),
        ("sawtooth of a 1 s cycle", 0.9, 1),
        ("leak of 2 %, 30 s", 0.95, 1),
        ("leak of 5 %, 30 s", 0.95, 1),
        ("one partition of 16 stalled", 0.95, 1),
        ("one of 16 stalls later", 0, 1),
        ("pause and catch-up", 0, 1),
        ("pause, cut off", 0, 1),
        ("an update every 9–20 s", 0, 0),
        ("no update in the first 30 s", 0.95, 1),
        ("generator late: 2–10 % too few, or 2 s late", 0.95, 1),
        ("broker late: the same", 0.95, 1),
        ("clock set back by 0.15–5 s, steady", 0, 1),
        ("clock set back by 0.15–5 s, leak of 5 %", 0, 1),
    ],
)
def test_false_verdicts(name: str, least: float, most: float) -> None:
    """Fail if more than 1 % of the verdicts on the first 30 s of a kind of run are false, or the
    share of decided runs is not between these; `pytest -s` prints the counts."""
    kind, rng = {**KINDS, **SHORT_KINDS}[name], np.random.default_rng(SEED)
    found: Counter[VerdictKind] = Counter()
    for _ in range(RUNS):
        run, recorded = kind.make(rng)
        end_ms = START_MS + 1000 * min(run.window_s, 30)
        found[judge(recorded, START_MS, end_ms, requested_per_s=run.rate_per_s).kind] += 1
    undecided = found[VerdictKind.UNDECIDED]
    false = RUNS - undecided - sum(found[of] for of in kind.right)
    print(f"\n| {name} | {' | '.join(str(found[of]) for of in VerdictKind)} | {false} |")
    assert false <= FALSE_AT_MOST * RUNS
    assert least <= 1 - undecided / RUNS <= most


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
    grows = f"lag is steady (grows by {slope.low_pct:.2f} to {slope.high_pct:.2f} % of real time"
    assert found.reason == f"Kept up: {grows}; limit 1 %), judged over 30 s".replace("-", "−")


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


@pytest.mark.parametrize(
    ("run", "requested_per_s", "kind", "named"),
    [
        (SyntheticRun(), 5_000, VerdictKind.GENERATOR_BOUND, "handed over 4,000 of 5,000"),
        (SyntheticRun(leak=0.3), 5_000, VerdictKind.FELL_BEHIND, "less than the requested rate"),
        # The generator waits for the broker.
        (
            SyntheticRun(generator_leak=0.05, broker_delay_ms=1_500),
            None,
            VerdictKind.BROKER_BOUND,
            "broker",
        ),
        (
            SyntheticRun(pause_at_ms=1_000, pause_ms=60_000),
            None,
            VerdictKind.FELL_BEHIND,
            "longest gap between two updates",
        ),
    ],
)
def test_who_is_to_blame_is_named_in_the_reason_or_a_warning(
    run: SyntheticRun, requested_per_s: float | None, kind: VerdictKind, named: str
) -> None:
    found = verdict(run, requested_per_s)
    assert found.kind is kind
    assert any(named in text for text in (found.reason, *found.warnings))


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


def test_no_update_in_the_window_but_one_later_is_falling_behind() -> None:
    found = verdict(replace(SILENT, noise_ms=1))
    assert (found.kind, found.updates) == (VerdictKind.FELL_BEHIND, 0)
    assert found.next_update_s and 2.9 < found.next_update_s < 4.1
    assert "Fell behind: no update of the engine in 30 s" in found.reason
    assert re.search(r"oldest uncounted event was 3[2-4]\.\d s old", found.reason)
    assert f"its next update came {found.next_update_s:.1f} s later" in found.reason
    # The engine's count at the window's end is unknown.
    assert found.throughput.processed_per_s is None
    assert found.measured and found.measured.lag_max_ms > 30_000
    # In a capacity search, the recording ends with the window.
    at_once = verdict(replace(SILENT, noise_ms=1, recorded_after_ms=100))
    assert (at_once.kind, at_once.next_update_s) == (VerdictKind.FELL_BEHIND, None)
    assert at_once.reason.endswith("s old")


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
    found = verdict(replace(run, pause_at_ms=-500, pause_ms=14_000, recorded_after_ms=5_000))
    assert (found.kind, found.updates) == (VerdictKind.FELL_BEHIND, 0)


@pytest.mark.slow
def test_an_undecided_run_suggests_a_longer_window() -> None:
    tried = (verdict(SyntheticRun(window_s=10), seed=seed) for seed in range(9))
    short = next(each for each in tried if each.measured)
    assert short.kind is VerdictKind.UNDECIDED
    assert short.shortest_window_s
    assert 15 <= short.shortest_window_s <= 60
    longer = SyntheticRun(window_s=short.shortest_window_s)
    kinds = [verdict(longer, seed=seed).kind for seed in range(20)]
    assert kinds.count(VerdictKind.KEPT_UP) >= 16


def test_too_few_updates() -> None:
    found = verdict(SyntheticRun(window_s=5))
    assert (found.kind, found.measured) == (VerdictKind.UNDECIDED, None)
    assert found.shortest_window_s == 30
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


def test_a_clock_set_back_and_an_early_end_of_the_recording_are_warned_of() -> None:
    recorded = synthetic.curves(LEAK, np.random.default_rng(1))
    found = judge(synthetic.set_back(recorded, START_MS + 25_000, 2_000), *LEAK.window)
    assert found.kind is VerdictKind.FELL_BEHIND
    assert found.window_s == pytest.approx(23, abs=0.2)  # the time before it
    assert any("set back by" in warning for warning in found.warnings)
    ended = judge(recorded, START_MS, START_MS + 40_000)
    assert any("recording ends" in warning for warning in ended.warnings)
