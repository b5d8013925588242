"""Tests of a whole comparison, on fake engines and a fake clock: its plan, its pieces, engines that
fail, and resumption."""

import signal
from pathlib import Path

import pytest
from rich.console import Console

from racetrack import terminal
from racetrack.analysis import table
from racetrack.config import load
from racetrack.results.folder import RunFolder, read_plan, read_run
from racetrack.results.repeats import COMPARISON_FILE, ComparisonRecord, PlannedRun
from racetrack.run.comparison import QUICK, Comparison, ComparisonArguments, planned, rounded_down
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from simulations.fluid import SimulatedEngine
from tests.run.fakes import FakeEngine, FakeStack
from tests.run.fluid_session import FluidRuns, FluidSession
from tests.some_engines import TWO

SWIFT, SLOW = TWO
CAPACITY = {SWIFT: 30_000.0, SLOW: 12_000.0}


class Named(FakeEngine):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.services = name, (name,)


class Fakes(FluidRuns):
    """Fake sessions and engines, with which comparisons are planned and carried out."""

    def __init__(self, logs: Path) -> None:
        super().__init__()
        self.logs = logs

    def session(self, engine: FakeEngine, _stack: Stack, folder: RunFolder, *_: object) -> Session:
        fluid = SimulatedEngine(per_s=CAPACITY[engine.name], noise=0.02)
        return self.open(fluid, folder, engine.name)

    def begin(self, rates: tuple[int, ...] = (2_000, 5_000)) -> Path:
        folder = self.logs / "compare"
        folder.mkdir()
        runs = [PlannedRun(engine=name, repeat=each) for each in (1, 2) for name in CAPACITY]
        record = ComparisonRecord(
            engines=tuple(CAPACITY),
            rates=rates,
            repeats=2,
            is_quick=True,
            seed=1,
            settings={name: {"NOISE_GATE": "true"} for name in CAPACITY},
            order=tuple(runs),
        )
        (folder / COMPARISON_FILE).write_text(record.model_dump_json())
        return folder

    def carry_out(self, folder: Path) -> ComparisonRecord:
        screen, guard = Screen(Console(quiet=True)), terminal.Guard(print)
        return Comparison(
            folder,
            screen,
            guard,
            open_session=self.session,
            prepare=lambda name, settings, _: (Named(name), FakeStack(settings).as_stack()),
            clock=self.clock,
        ).run()


@pytest.fixture
def fakes(tmp_path: Path) -> Fakes:
    return Fakes(tmp_path)


def test_each_engine_is_measured_at_every_rate_and_at_saturation(fakes: Fakes) -> None:
    record = fakes.carry_out(fakes.begin())
    assert [piece.outcome for piece in record.pieces] == ["ok"] * 12
    assert not any(record.missing(run) for run in record.order)
    for piece in record.pieces:
        assert read_run(fakes.logs / piece.tag).outcome == "ok"
        if piece.pageviews_per_s is None:
            expected = CAPACITY[piece.engine]
            assert piece.figures["capacity_per_s"] == pytest.approx(expected, rel=0.05)
        else:
            assert piece.verdict != "fell behind"
            assert piece.figures["cpu_s_per_million"] == pytest.approx(10, rel=0.05)
            assert (piece.figures["lag_p99_ms"] or 0) > 0
    # Each run warms up at the lowest and highest rate, and then tries all rates in an order of its
    # own.
    orders = [session.set_to for session in fakes.sessions]
    assert all(order[:2] == [2_000, 5_000] for order in orders)
    assert all(sorted(order[2:]) == [2_000, 5_000] for order in orders)


def test_an_engine_that_runs_out_of_memory_gets_a_lower_bound(fakes: Fakes) -> None:
    def dies(session: FluidSession) -> None:
        if session.service == SWIFT:
            session.dies_at_s = QUICK.warm_up_s + 2 * (QUICK.settle_s + QUICK.watch_s) + 30

    fakes.change = dies
    folder = fakes.begin()
    record = fakes.carry_out(folder)
    bounds = [piece for piece in record.pieces if piece.is_lower_bound]
    assert {(piece.engine, piece.pageviews_per_s) for piece in bounds} == {(SWIFT, None)}
    assert all("out of memory" in piece.remark for piece in bounds)
    assert all((piece.figures["capacity_per_s"] or 0) > 10_000 for piece in bounds)
    rows = table.read([folder]).rows
    assert {row.variant for row in rows if "capacity_per_s" in row.at_least} == {SWIFT}


def test_an_engine_that_fails_at_a_rate_ends_its_run_only(fakes: Fakes) -> None:
    def dies(session: FluidSession) -> None:
        if session.service == SWIFT:
            session.dies_at_s = QUICK.warm_up_s + 1

    fakes.change = dies
    record = fakes.carry_out(fakes.begin())
    outcomes = {(piece.engine, piece.outcome) for piece in record.pieces}
    assert outcomes == {(SWIFT, "the engine ended: out of memory"), (SLOW, "ok")}
    assert len(record.pieces) == 12


@pytest.mark.slow
def test_what_was_measured_before_an_interruption_counts(fakes: Fakes) -> None:
    folder = fakes.begin()

    def interrupt(session: FluidSession) -> None:
        if len(fakes.sessions) == 2:
            raise terminal.Interrupted(signal.SIGINT)

    fakes.change = interrupt
    with pytest.raises(terminal.Interrupted):
        fakes.carry_out(folder)
    before = read_plan(folder, ComparisonRecord)
    assert len(before.pieces) == 6
    fakes.change = lambda _: None
    after = fakes.carry_out(folder)
    assert after.pieces[:6] == before.pieces
    assert len(after.pieces) == 12
    assert len(fakes.sessions) == 4


def test_a_piece_that_others_disturbed_is_measured_again(fakes: Fakes) -> None:
    def disturb(session: FluidSession) -> None:
        if len(fakes.sessions) == 1:
            session.disturbed_until_s = QUICK.warm_up_s + QUICK.settle_s + QUICK.watch_s

    fakes.change = disturb
    record = fakes.carry_out(fakes.begin())
    assert [piece.outcome for piece in record.pieces] == ["ok"] * 12
    times_set = [len(session.set_to) for session in fakes.sessions]
    assert times_set[1] > times_set[0] == 4


@pytest.mark.slow
def test_pieces_that_were_never_quiet_are_missing(fakes: Fakes) -> None:
    def disturb(session: FluidSession) -> None:
        if len(fakes.sessions) == 3:
            session.disturbed_until_s = float("inf")

    fakes.change = disturb
    folder = fakes.begin()
    record = fakes.carry_out(folder)
    assert [len(record.missing(run)) for run in record.order] == [0, 0, 0, 3]
    assert all("other programs used 33" in piece.outcome for piece in record.pieces[9:])
    fakes.change = lambda _: None
    assert not any(map(fakes.carry_out(folder).missing, record.order))


@pytest.mark.slow
def test_rates_are_found_by_a_probe_of_each_engine(fakes: Fakes) -> None:
    record = fakes.carry_out(fakes.begin(rates=()))
    assert record.probed_per_s[SLOW] == pytest.approx(12_000, rel=0.1)
    slowest = record.probed_per_s[SLOW]
    assert record.rates == tuple(rounded_down(share * slowest) for share in (0.1, 0.25, 0.5))
    assert len(record.pieces) == 16


@pytest.mark.parametrize(("per_s", "rate"), [(12_345, 10_000), (999, 900), (5, 5), (0.4, 1)])
def test_found_rates_have_one_digit(per_s: float, rate: int) -> None:
    assert rounded_down(per_s) == rate


def test_the_plan_has_every_engine_once_a_repeat_in_random_order() -> None:
    plan = planned(ComparisonArguments(engines=TWO, seed=3))
    assert len(plan.order) == 6
    for repeat in (1, 2, 3):
        assert {run.engine for run in plan.order if run.repeat == repeat} == set(TWO)
    assert planned(ComparisonArguments(engines=TWO, seed=3)).order == plan.order
    assert any(
        planned(ComparisonArguments(engines=TWO, seed=seed)).order != plan.order
        for seed in range(9)
    )


def test_heaps_and_reads_are_set_by_one_rule_unless_the_user_has_set_them() -> None:
    plan = planned(ComparisonArguments(engines=("dh", "flink")))
    heap = plan.settings["dh"]["DEEPHAVEN_HEAP"]
    assert plan.settings["flink"]["FLINK_HEAP"] == heap
    assert f"FLINK_HEAP={heap}" in plan.heap_rule
    assert plan.reads_per_s == 2
    own = planned(
        ComparisonArguments(engines=("dh",), given=frozenset({"DEEPHAVEN_HEAP"}), reads=False)
    )
    assert own.settings["dh"] == {}
    assert own.heap_rule == "set by the user: DEEPHAVEN_HEAP"
    assert own.reads_per_s == load().reads_per_second


def test_a_quick_comparison_of_two_takes_ten_minutes_and_one_of_three_an_hour() -> None:
    for engines_of, is_quick, most_s in ((TWO, True, 600), (("a", "b", "c"), False, 3_600)):
        record = ComparisonRecord(
            engines=engines_of,
            rates=(2_000, 10_000) if is_quick else (),
            repeats=2 if is_quick else 3,
            is_quick=is_quick,
            seed=1,
            order=tuple(
                PlannedRun(engine=name, repeat=each)
                for each in range(1, 3 if is_quick else 4)
                for name in engines_of
            ),
        )
        assert Comparison.left_s(record) <= most_s
