"""Test that the runner does the same as the comparison that it replaces: the same waits, rates and
times, in the same order."""

from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from racetrack import terminal
from racetrack.plan.model import find_plan, read_plan_file
from racetrack.plan.resolve import Options, resolve
from racetrack.results.folder import RunFolder, write_record
from racetrack.results.repeats import RepeatedRuns
from racetrack.run import comparison, scale
from racetrack.run.comparison import Comparison, ComparisonArguments
from racetrack.run.repeats import RepeatedMeasurement
from racetrack.run.runner import Runner, begin
from racetrack.run.scale import ScaleArguments, Scaling
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from simulations.fluid import SimulatedEngine
from tests.run.fakes import FakeEngine, FakeStack
from tests.run.fluid_session import FluidRuns, FluidSession
from tests.run.test_runner import CAPACITY, Named
from tests.some_engines import TWO

SEED = 3
SCALED = TWO[0]
Line = tuple[str, float, str, object]


class Recorded(FluidRuns):
    """Fake sessions that record what they were told to do, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.line: list[Line] = []

    def session(self, engine: FakeEngine, _stack: Stack, folder: RunFolder, *_: object) -> Session:
        per_s = CAPACITY[engine.name]
        made = self.open(SimulatedEngine(per_s=per_s, noise=0.02), folder, engine.name)
        for name in ("watch", "wait_until", "set_rate", "offer", "sample_memory", "stop"):
            self._record(cast(FluidSession, made), name)
        return made

    def _record(self, session: FluidSession, name: str) -> None:
        do = getattr(session, name)

        def recorded(*arguments: Any) -> Any:
            told = [round(each, 3) for each in arguments if isinstance(each, int | float)]
            words = [each for each in arguments if isinstance(each, str)]
            self.line.append((session.service, round(self.clock.now_s, 3), name, (told, words)))
            return do(*arguments)

        setattr(session, name, recorded)

    def prepare(self, name: str, settings: Any, _: object) -> tuple[FakeEngine, Stack]:
        return Named(name), FakeStack(settings).as_stack()

    def new(self, folder: Path) -> list[Line]:
        screen, guard = Screen(Console(quiet=True)), terminal.Guard(print)
        runner = Runner(
            folder,
            screen,
            guard,
            open_session=self.session,
            prepare=self.prepare,
            clock=self.clock,
        )
        runner.run()
        return self.line

    def old(
        self, folder: Path, record: RepeatedRuns, kind: type[RepeatedMeasurement[Any]]
    ) -> list[Line]:
        folder.mkdir()
        write_record(folder / record.file, record)
        screen, guard = Screen(Console(quiet=True)), terminal.Guard(print)
        measurement = kind(
            folder,
            screen,
            guard,
            open_session=self.session,
            prepare=self.prepare,
            clock=self.clock,
        )
        measurement.run()
        return self.line


@pytest.fixture(autouse=True)
def _logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGS_FOLDER", str(tmp_path / "new"))


def lines_of_plan(name: str, options: Options) -> list[Line]:
    plan = resolve(read_plan_file(find_plan(name)), name, options)
    return Recorded().new(begin(plan))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quick", "full"])
def test_a_comparison_has_the_same_time_line(name: str, tmp_path: Path) -> None:
    arguments = ComparisonArguments(engines=TWO, is_quick=name == "quick", seed=SEED, repeats=1)
    before = Recorded().old(tmp_path / "old", comparison.planned(arguments), Comparison)
    after = lines_of_plan(name, Options(variants=TWO, seed=SEED, repeats=1))
    assert len(before) > 20
    assert after == before


@pytest.mark.slow
def test_a_scaling_measurement_has_the_same_time_line(tmp_path: Path) -> None:
    scaled = ScaleArguments(engine=SCALED, replicas=(1, 2), hold_per_s=13_000, seed=SEED, repeats=1)
    before = Recorded().old(tmp_path / "old", scale.planned(scaled), Scaling)
    options = Options(
        variants=(f"{SCALED}[ENGINE_REPLICAS=1|2]",), loads=("13k",), seed=SEED, repeats=1
    )
    assert len(before) > 20
    assert lines_of_plan("scale", options) == before
