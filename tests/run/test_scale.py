"""Tests of scaling as a whole, on a fake engine and clock: plan, pieces, and the rate to hold."""

from pathlib import Path

import pytest
from rich.console import Console

from racetrack import terminal
from racetrack.analysis import table
from racetrack.analysis.claims import estimates, ratios
from racetrack.config import Settings
from racetrack.engines.contract import Engine
from racetrack.results.folder import RunFolder
from racetrack.results.repeats import SCALE_FILE, ScaleRecord
from racetrack.run.scale import ScaleArguments, Scaling, describe_plan, planned, shareable
from racetrack.run.session import Session
from racetrack.stack.contract import Say, Stack
from racetrack.terminal import Screen
from simulations.fluid import SimulatedEngine
from tests.run.fakes import FakeEngine, FakeStack
from tests.run.fluid_session import FluidRuns
from tests.some_engines import CALIBRATION, EXAMPLE

EXPONENT, OF_ONE = 0.8, 12_000.0


class Fakes(FluidRuns):
    """Fake sessions of an engine whose capacity grows with its replicas, to plan and carry out
    scaling."""

    def __init__(self, logs: Path) -> None:
        super().__init__()
        self.replicas, self.logs = list[int](), logs

    def session(self, _engine: FakeEngine, _stack: Stack, folder: RunFolder, *_: object) -> Session:
        fluid = SimulatedEngine(per_s=OF_ONE * self.replicas[-1] ** EXPONENT, noise=0.02)
        return self.open(fluid, folder, CALIBRATION)

    def prepare(self, name: str, settings: Settings, _: Say) -> tuple[Engine, Stack]:
        self.replicas.append(settings.engine_replicas)
        engine = FakeEngine()
        engine.name, engine.services = name, (name,)
        return engine, FakeStack(settings).as_stack()

    def begin(self, hold_per_s: int | None = None) -> Path:
        folder = self.logs / "scale"
        folder.mkdir()
        arguments = ScaleArguments(CALIBRATION, (1, 2, 4), hold_per_s, is_quick=True, seed=3)
        (folder / SCALE_FILE).write_text(planned(arguments).model_dump_json())
        return folder

    def carry_out(self, folder: Path) -> ScaleRecord:
        screen, guard = Screen(Console(quiet=True)), terminal.Guard(print)
        return Scaling(
            folder,
            screen,
            guard,
            open_session=self.session,
            prepare=self.prepare,
            clock=self.clock,
        ).run()


@pytest.fixture
def fakes(tmp_path: Path) -> Fakes:
    return Fakes(tmp_path)


@pytest.mark.slow
def test_the_programmed_factors_are_found(fakes: Fakes) -> None:
    folder = fakes.begin()
    record = fakes.carry_out(folder)
    assert [piece.outcome for piece in record.pieces] == ["ok"] * 6
    assert fakes.replicas == [run.replicas for run in record.order]
    rows = table.read([folder]).rows
    for count in (2, 4):
        at = (f"{CALIBRATION} × {count}", "capacity_per_s", None)
        ratio = ratios(rows, CALIBRATION)[at].ratio
        assert ratio.low and ratio.high
        assert ratio.ratio == pytest.approx(count**EXPONENT, rel=0.05)
        share = estimates(rows)[at[0], "share_of_ideal_pct", None]
        assert share.mean == pytest.approx(100 * count ** (EXPONENT - 1), rel=0.05)
    assert record.label == f"{CALIBRATION}_scale"


@pytest.mark.slow
def test_a_rate_is_held_by_enough_replicas(fakes: Fakes) -> None:
    folder = fakes.begin(hold_per_s=15_000)
    record = fakes.carry_out(folder)
    held = {row.variant: row.held for row in table.read([folder]).rows if row.load}
    assert held == {CALIBRATION: False, f"{CALIBRATION} × 2": True, f"{CALIBRATION} × 4": True}
    at_rate = [piece for piece in record.pieces if piece.pageviews_per_s]
    assert all((piece.window is None) == (piece.replicas == 1) for piece in at_rate)
    # A rate above the measured capacity is not offered.
    assert all(session.set_to in ([], [15_000]) for session in fakes.sessions)


@pytest.mark.slow
def test_a_capacity_that_was_measured_before_decides_about_the_rate(fakes: Fakes) -> None:
    folder = fakes.begin(hold_per_s=15_000)
    whole = fakes.carry_out(folder)
    saturated = tuple(piece for piece in whole.pieces if piece.pageviews_per_s is None)
    (folder / SCALE_FILE).write_text(
        whole.model_copy(update={"pieces": saturated}).model_dump_json()
    )
    after = fakes.carry_out(folder)
    assert after.pieces[:6] == saturated
    assert len(after.pieces) == 12


def test_the_plan_names_runs_minutes_and_partitions() -> None:
    plan = planned(ScaleArguments(EXAMPLE, (4, 1, 2, 1), 50_000, seed=1))
    assert plan.replicas == (1, 2, 4)
    assert [len([run for run in plan.order if run.replicas == n]) for n in plan.replicas] == [3] * 3
    assert plan.settings[EXAMPLE] == {"PAGEVIEWS_PARTITIONS": "8"}
    text = "\n".join(describe_plan(plan))
    assert f"Scaling {EXAMPLE} to 1, 2, 4 replicas takes about 5" in text
    assert "then 50,000/s for 60 s" in text
    assert "8 partitions, shared equally by the replicas" in text


def test_the_users_number_of_partitions_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEVIEWS_PARTITIONS", "6")
    given = frozenset({"PAGEVIEWS_PARTITIONS"})
    plan = planned(ScaleArguments(EXAMPLE, (1, 2, 4), given=given))
    assert plan.partitions == 6
    assert "which 4 replicas can't share equally" in describe_plan(plan)[-1]


@pytest.mark.parametrize(
    ("partitions", "replicas", "expected"),
    [(6, (1, 2), 6), (6, (1, 2, 4, 8), 8), (6, (1, 3, 4), 12), (6, (5, 7, 8), 8), (1, (2,), 2)],
)
def test_partitions_can_be_shared_equally_if_possible(
    partitions: int, replicas: tuple[int, ...], expected: int
) -> None:
    assert shareable(partitions, replicas) == expected
