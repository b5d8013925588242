"""Tests of the calibration's findings, which compare measured values with the defects that are
programmed into a fake engine: equal values pass, others do not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from racetrack import kafka_client
from racetrack.analysis import calibration
from racetrack.results.defects import InjectedDefect
from tests.records import COST, VIEW, run_json

NOISY = InjectedDefect(capacity_per_s=8_000, capacity_noise_pct=10, pause_ms=500, pause_every_s=10)
START_MS = 1_795_000_000_000
STALL_MS = START_MS + 5_000
END_MS = START_MS + 20_000
STALL, CAPACITY = InjectedDefect(stalled_partition=2), InjectedDefect(capacity_per_s=8_000)


def verdict(
    kind: str = "kept up", p50_ms: float = 0, counted_per_s: float = 3000
) -> dict[str, Any]:
    return {
        "kind": kind,
        "reason": "why",
        "from_ms": STALL_MS + 1_000,
        "until_ms": END_MS,
        "measured": {
            "lag_p50_ms": p50_ms,
            "lag_p99_ms": p50_ms + 5,
            "lag_max_ms": 12_000.0,
            "processing_lag_p50_ms": p50_ms - 5,
        },
        "throughput": {"processed_per_s": counted_per_s},
    }


def write(
    folder: Path,
    judged: dict[str, Any],
    rate: int = 3000,
    outcome: str = "ok",
    **results: Any,
) -> Path:
    folder.mkdir(exist_ok=True)
    run = {
        "engine": "swift",
        "engine_services": ["swiftd"],
        "outcome": outcome,
        "arguments": {"events_per_s": rate},
        "measured": {"window": {"start_ms": STALL_MS + 1_000, "end_ms": END_MS}},
        "results": {"verdict": judged, **results},
    }
    (folder / "run.json").write_text(json.dumps(run_json(run)))
    return folder


def write_raw(folder: Path, curves: list[str], log: list[str]) -> Path:
    """Write the rows of the curves, and the engine's log."""
    (folder / "curves.csv").write_text("\n".join(["at_ms,curve,partition,count", *curves, ""]))
    (folder / "stack").mkdir()
    (folder / "stack" / "swiftd.log").write_text("\n".join([*log, ""]))
    return folder


def lag(p50_ms: float, p99_ms: float, processing_ms: float) -> dict[str, Any]:
    judged = verdict()
    judged["measured"] |= {"lag_p50_ms": p50_ms, "lag_p99_ms": p99_ms}
    judged["measured"] |= {"processing_lag_p50_ms": processing_ms}
    return {"judged": judged}


def law(waiting: float, by_age: float, holds: bool = True) -> dict[str, Any]:
    found = {"waiting": waiting, "rate_times_age": by_age, "holds": holds}
    return {"littles_law": {**found, "ratio": 1, "tolerance": 9}}


def view(p50_ms: float, p99_ms: float) -> dict[str, Any]:
    lags = {"lag_p50_ms": p50_ms, "lag_p99_ms": p99_ms}
    return {"views": [{**VIEW, "tracer_events_per_s": 12.0, **lags}]}


def read(time_ms: float, age_ms: float, answered: int = 20) -> dict[str, Any]:
    time, age = ({"p50_ms": ms, "p99_ms": ms} for ms in (time_ms, age_ms))
    counts = {"due": 20, "answered": answered, "errors": 0, "first_error": None, "rows_max": 6}
    answers = {"query": "a by b", **counts, "time": time, "service_time": time, "age": age}
    return {**view(1_213, 1_254), "reads": [answers]}


DELAY = InjectedDefect(delay_ms=250)
CYCLE = replace(DELAY, cycle_ms=1_000)
SPREAD = replace(CYCLE, spread_ms=15)
TRAILING = replace(DELAY, view_behind_ms=1_000)
ANSWERING = replace(TRAILING, answer_ms=300)
Find = Callable[[Path, InjectedDefect], calibration.Finding]


@pytest.mark.parametrize(
    ("find", "defect", "measured", "within"),
    [
        (calibration.delay, DELAY, {"judged": verdict(p50_ms=230)}, True),
        (calibration.delay, DELAY, {"judged": verdict(p50_ms=280)}, True),
        (calibration.delay, DELAY, {"judged": verdict(p50_ms=229)}, False),
        (calibration.delay, DELAY, {"judged": verdict(p50_ms=281)}, False),
        (calibration.waiting, DELAY, law(755, 750), True),
        (calibration.waiting, DELAY, law(755, 750, holds=False), False),
        (calibration.waiting, DELAY, law(755, 900), False),
        (calibration.waiting, DELAY, law(600, 750), False),
        (calibration.waiting, DELAY, {}, False),
        (calibration.sawtooth, CYCLE, lag(760, 1_251, 255), True),
        (calibration.sawtooth, CYCLE, lag(255, 300, 255), False),
        (calibration.sawtooth, CYCLE, lag(760, 1_500, 255), False),
        (calibration.sawtooth, SPREAD, lag(766, 1_256, 266), True),
        (calibration.view, TRAILING, view(1_213, 1_254), True),
        (calibration.view, TRAILING, view(1_150, 1_299), True),
        (calibration.view, TRAILING, view(1_213, 1_305), False),
        (calibration.view, TRAILING, view(1_130, 1_250), False),
        (calibration.view, TRAILING, {}, False),
        (calibration.answer, ANSWERING, read(302, 1_520), True),
        (calibration.answer, ANSWERING, read(302, 1_450), True),
        (calibration.answer, ANSWERING, read(340, 1_520), False),
        (calibration.answer, ANSWERING, read(302, 1_600), False),
        (calibration.answer, ANSWERING, read(302, 1_400), False),
        (calibration.answer, ANSWERING, read(302, 1_520, answered=19), False),
        (calibration.answer, ANSWERING, {}, False),
    ],
)
def test_what_was_measured_has_to_be_what_was_programmed(
    tmp_path: Path, find: Find, defect: InjectedDefect, measured: dict[str, Any], within: bool
) -> None:
    found = find(write(tmp_path, **{"judged": verdict(p50_ms=255), **measured}), defect)
    assert found.within == within, found


@pytest.mark.parametrize(
    ("cpu_s", "within"), [(120.0, True), (110.1, True), (109.9, False), (130.1, False)]
)
def test_an_injected_cpu_cost_is_the_difference_between_two_runs(
    tmp_path: Path, cpu_s: float, within: bool
) -> None:
    base, costly = (
        write(tmp_path / name, verdict(), engine={**COST, "cpu_s_per_million": cost})
        for name, cost in (("base", 20.0), ("costly", cpu_s))
    )
    found = calibration.cpu(costly, base, InjectedDefect(cpu_us_per_event=100))
    assert found.programmed == "100 CPU-s/million"
    assert found.within == within


@pytest.mark.parametrize(
    ("count_ms", "view_ms", "within"),
    [(270, 300, True), (235, 265, True), (240, 330, False), (300, 290, False)],
)
def test_a_path_has_to_show_the_delay_in_the_count_and_in_the_view(
    tmp_path: Path, count_ms: float, view_ms: float, within: bool
) -> None:
    runs = [
        write(tmp_path / name, verdict(p50_ms=count), **view(p50, p50 + 40))
        for name, count, p50 in (("own", 10, 40), ("late", count_ms, view_ms))
    ]
    found = calibration.path(runs[1], runs[0], DELAY)
    assert found.within == within
    assert "p50 10 ms, p99 15 ms" in found.measured and "p50 40 ms, p99 80 ms" in found.measured


def test_a_failed_run_fails_with_its_reason(tmp_path: Path) -> None:
    ended = "broker ended during the run"
    failed = write(tmp_path / "a", verdict(), outcome=ended)
    useless = write(tmp_path / "b", verdict() | {"measured": None, "reason": "too few updates"})
    bare = write(tmp_path / "c", verdict())
    found = {
        ended: calibration.delay(failed, DELAY),
        "too few updates": calibration.delay(useless, DELAY),
        "no view was traced": calibration.path(bare, bare, DELAY),
    }
    assert {why: (one.measured, one.within) for why, one in found.items()} == {
        why: (why, False) for why in found
    }
    costly = InjectedDefect(cpu_us_per_event=100)
    assert calibration.cpu(failed, failed, costly).measured == ended
    assert not calibration.stall(failed, STALL).within
    assert not calibration.capacity(failed, failed, CAPACITY).within
    assert not calibration.work(failed, NOISY).within


@pytest.mark.parametrize(
    ("low", "high", "kinds", "counted_per_s", "within"),
    [
        (7600, 8400, ("kept up", "fell behind"), 8003, True),
        (7600, 8400, ("kept up", "fell behind"), 7500, False),
        (7600, 8400, ("undecided", "fell behind"), 8003, False),
        (7600, 8400, ("kept up", "kept up"), 8003, False),
        (7600, 8400, ("kept up", "generator-bound"), 8003, False),
        (7000, 8400, ("kept up", "fell behind"), 8003, False),
        (7600, 9000, ("kept up", "fell behind"), 8003, False),
    ],
)
def test_a_capacity_has_to_lie_between_what_was_kept_up_with_and_what_not(
    tmp_path: Path, low: int, high: int, kinds: tuple[str, str], counted_per_s: float, within: bool
) -> None:
    below = write(tmp_path / "a", verdict(kinds[0]), low)
    above = verdict(kinds[1], counted_per_s=counted_per_s)
    found = calibration.capacity(below, write(tmp_path / "b", above, high), CAPACITY)
    assert (found.programmed, found.within) == ("capacity of 8,000/s", within)


def overloaded(folder: Path, counts_of_allowed: float, kind: str = "fell behind") -> Path:
    """Write a run of an engine whose capacity is 5,000/s at first and grows by 100/s each second.
    It counts `counts_of_allowed` times the events that this capacity allows."""
    rows: list[str] = []
    notes = ["something else"]
    for at_ms in range(START_MS, END_MS + 1, 100):
        since_s = (at_ms - START_MS) / 1000
        due, allowed = round(12_000 * since_s), 5_000 * since_s + 50 * since_s**2
        rows += [f"{at_ms},{name},0,{due}" for name in ("due", "handed_over", "published")]
        rows.append(f"{at_ms},processed,0,{round(counts_of_allowed * allowed)}")
        if at_ms % 1_000 == 300:
            notes.append(f"RACETRACK capacity timestamp={at_ms}, allowed={allowed:.3f}, seed=4")
    return write_raw(write(folder, verdict(kind), rate=12_000), rows, notes)


@pytest.mark.parametrize(
    ("share", "kind", "within"),
    [
        (1.0, "fell behind", True),
        (0.995, "fell behind", True),
        (0.98, "fell behind", False),
        (1.02, "fell behind", False),
        (1.0, "kept up", False),
    ],
)
def test_an_overloaded_engine_has_to_be_seen_counting_what_it_was_allowed(
    tmp_path: Path, share: float, kind: str, within: bool
) -> None:
    found = calibration.work(overloaded(tmp_path, share, kind), NOISY)
    # The mean capacity from 6.3 s to 19.3 s after the start: 5,000 + 100 x 12.8 = 6,280.
    counted = f"{kind}, counting {6_280 * share:,.0f}/s in 13 s with a capacity of 6,280/s"
    assert found.measured.startswith(counted)
    assert found.measured.endswith("(long-run mean 7,600/s)")
    assert found.within == within


def stalled(
    folder: Path,
    stalls: int = 2,
    tells_after_ms: int = 0,
    dt_ms: int = 5,
    kind: str = "fell behind",
) -> Path:
    """Write a run with 3 partitions of 1,000 events per second each. From STALL_MS on, partition
    `stalls` is not counted any more, and for the first `tells_after_ms` the engine reports nothing
    at all."""
    rows: list[str] = []
    for at_ms in range(START_MS, END_MS + 1, 100):
        for p in range(3):
            due = at_ms - START_MS
            rows += [f"{at_ms},{name},{p},{due}" for name in ("due", "handed_over", "published")]
            silent = STALL_MS < at_ms < STALL_MS + tells_after_ms
            if not silent and (p != stalls or at_ms <= STALL_MS):
                rows.append(f"{at_ms},processed,{p},{max(0, due - 10)}")
    delays = (
        f"timestamp={at_ms}, total=1, max_received_at=1, dt_ms={dt_ms}\n"
        for at_ms in range(STALL_MS, END_MS, 100)
    )
    write(folder, verdict(kind))
    (folder / "swift_sample_dt.log").write_text("".join(delays))
    ends = ((STALL_MS, 2), (END_MS + 1, -1))
    return write_raw(
        folder, rows, [f"RACETRACK stalled timestamp={at}, partition={p}" for at, p in ends]
    )


@pytest.mark.parametrize(
    ("run", "expected", "within"),
    [
        ({}, "detected after 1.00 s, fell behind, median dt_ms 5 ms", True),
        ({"stalls": 1}, "not detected", False),  # not the partition that is programmed to stall
        ({"stalls": -1}, "not detected", False),
        ({"tells_after_ms": 2_500}, "detected after 2.50 s", False),
        ({"dt_ms": 101}, "median dt_ms 101 ms", False),
        ({"kind": "kept up"}, "kept up", False),
    ],
)
def test_a_stall_has_to_be_seen_by_lag_alone_once_it_passes_a_second(
    tmp_path: Path, run: dict[str, Any], expected: str, within: bool
) -> None:
    found = calibration.stall(stalled(tmp_path, **run), STALL)
    assert found.within is within
    assert expected in found.measured


@pytest.mark.parametrize(
    ("find", "defect"), [(calibration.stall, STALL), (calibration.work, NOISY)]
)
def test_an_engine_that_does_not_note_what_it_did_fails_the_calibration(
    tmp_path: Path, find: Find, defect: InjectedDefect
) -> None:
    folder = stalled(tmp_path)
    (folder / "stack" / "swiftd.log").write_text("nothing\n")
    with pytest.raises(ValueError, match=r"partition 2|capacity"):
        find(folder, defect)


def test_the_tolerance_of_a_path_by_topics_is_the_time_between_two_fetches() -> None:
    assert calibration.FETCHED_EVERY_MS == kafka_client.FETCH_MS
