"""Repeated runs on fresh stacks in random order, for comparisons and scaling measurements."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from racetrack import engines, terminal
from racetrack.clock import SYSTEM_CLOCK, Clock
from racetrack.config import Settings, for_record, load
from racetrack.engines.contract import Engine
from racetrack.errors import BusyError, RacetrackError, SetupError, UsageError
from racetrack.results.folder import RunFolder, named_folder, read_plan, write_record
from racetrack.results.repeats import Piece, PlannedRun, RepeatedRuns
from racetrack.results.run import RunArguments, runtime_label
from racetrack.run import loads
from racetrack.run.checks import require_usable, services_of
from racetrack.run.compared_run import ComparedRun, Phases
from racetrack.run.lifecycle import OpenSession, prepared, started_session
from racetrack.run.session import Session
from racetrack.stack.contract import Say, Stack
from racetrack.stack.runtime import open_stack
from racetrack.terminal import Screen

Plan = TypeVar("Plan", bound=RepeatedRuns)
Prepare = Callable[[str, Settings, Say], tuple[Engine, Stack]]
QUICK_REPEATS, REPEATS = 2, 3


@dataclass(frozen=True, kw_only=True)
class PlanArguments:
    """Arguments of the command line that all plans have. `given` contains the names of settings
    that the user has set in the environment."""

    repeats: int | None = None
    is_quick: bool = False
    workload: str | None = None
    seed: int | None = None
    given: frozenset[str] = frozenset()

    @property
    def settings(self) -> dict[str, str]:
        """Settings that follow from the arguments."""
        return {"WORKLOAD": self.workload} if self.workload else {}

    def choose_repeats(self) -> int:
        """Return the number of repeats, by default QUICK_REPEATS or REPEATS."""
        return self.repeats or (QUICK_REPEATS if self.is_quick else REPEATS)

    def choose_seed(self) -> int:
        """Return the seed of the random order, by default a random one."""
        return random.randrange(10_000) if self.seed is None else self.seed  # noqa: S311


def random_order(
    sides: Sequence[tuple[str, int]], repeats: int, seed: int
) -> tuple[PlannedRun, ...]:
    """Return the planned runs. Each repeat contains each side once, in random order. A side is an
    engine with a number of replicas."""
    rng = random.Random(seed)  # noqa: S311
    return tuple(
        PlannedRun(engine=engine, replicas=replicas, repeat=repeat)
        for repeat in range(1, repeats + 1)
        for engine, replicas in rng.sample(list(sides), len(sides))
    )


def settings_for(record: RepeatedRuns, run: PlannedRun, logs_folder: Path) -> Settings:
    """Return the settings of a run, with bounded retention in the broker.

    Raises:
        UsageError: the settings can't be used.
    """
    overrides = {**record.overrides(run), "LOGS_FOLDER": str(logs_folder.resolve())}
    return loads.settings_for(load(overrides))


def require_possible(record: RepeatedRuns) -> None:
    """Check, before the first run, that every engine can run with every number of replicas.

    Raises:
        UsageError, SetupError: an engine can't run.
    """
    for run in {(run.engine, run.replicas): run for run in record.order}.values():
        engine = engines.find_engine(run.engine)
        settings = settings_for(record, run, load().logs_folder)
        stack = open_stack(settings, services_of(engine, settings), lambda _: None)
        require_usable(engine, stack)
        record.runtime = runtime_label(stack.runtime, for_record(settings))
        record.caveats[run.engine] = tuple(engine.caveats(settings))


def begin(record: RepeatedRuns) -> Path:
    """Create the folder of the plan, with its record; return the folder."""
    folder = named_folder(load().logs_folder, record.label)
    write_record(folder / record.file, record)
    return folder


class RepeatedMeasurement(ABC, Generic[Plan]):
    """Makes the remaining runs of a plan, each on a fresh stack. Every measured window becomes a
    piece of the record, which is written at once. A subclass defines the durations and measures one
    run."""

    plan: type[Plan]
    durations: Phases
    quick: Phases  # durations with the option --quick

    def __init__(
        self,
        folder: Path,
        screen: Screen,
        guard: terminal.Guard,
        *,
        open_session: OpenSession = Session,
        prepare: Prepare = prepared,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.folder, self.record = folder, read_plan(folder, self.plan)
        self._phases = self.phases_of(self.record)
        self._screen, self._guard, self._clock = screen, guard, clock
        self._open_session, self._prepare = open_session, prepare

    @classmethod
    def phases_of(cls, record: Plan) -> Phases:
        """Return the durations of the phases of each run."""
        return cls.quick if record.is_quick else cls.durations

    @classmethod
    @abstractmethod
    def left_s(cls, record: Plan) -> float:
        """Return the estimated time for the remaining runs, in seconds."""

    @abstractmethod
    def measure(self, fresh: ComparedRun, run: PlannedRun) -> None:
        """Measure the missing windows of a run."""

    def run(self) -> Plan:
        """Make the runs that still lack windows. If an engine fails, only its run ends.

        Raises:
            RacetrackError: a cause other than the engine prevented a run.
            Interrupted: a signal was received. Measurements made so far are kept.
        """
        pending = [run for run in self.record.order if self.record.missing(run)]
        for number, run in enumerate(pending, start=1):
            self._screen.heading(
                f"== run {number} of {len(pending)}: {run}, repeat {run.repeat}; about"
                f" {self.left_s(self.record) / 60:.0f} minutes left"
            )
            began_s = self._clock.monotonic()
            try:
                with self.fresh(run) as fresh:
                    self.measure(fresh, run)
            except (UsageError, SetupError, BusyError):
                raise  # not the engine's fault
            except RacetrackError as error:
                self._screen.say(f"  {run} failed: {error}")
                self._fail(run, str(error))
            finally:
                self.record.minutes += (self._clock.monotonic() - began_s) / 60
                self.write()
            self._guard.rearm()
        return self.record

    @contextmanager
    def fresh(self, run: PlannedRun) -> Iterator[ComparedRun]:
        """Start a stack for a run and load the engine's demo script; stop everything at the end of
        the context.

        Raises:
            RacetrackError: a component of the stack failed.
            Interrupted: a signal was received.
        """
        settings, say = settings_for(self.record, run, self.folder.parent), self._screen.say
        engine, stack = self._prepare(run.engine, settings, say)
        folder = RunFolder.create(settings.logs_folder, run.engine, self.record.run_label)
        arguments = RunArguments(
            pageviews_per_s=int(settings.pageviews_per_second_start),
            wait_s=self._phases.settle_s,
            samples=1,
            delay_s=1.0,
            warm_up_s=self._phases.warm_up_s,
        )
        started = started_session(
            engine, stack, folder, arguments, self._screen, self._guard, self._open_session
        )
        with started as session:
            load = loads.Load(session, folder.path, settings)
            phases, clock = self._phases, self._clock
            yield ComparedRun(load, folder, settings, phases, self._screen, self._guard, clock)
        self._guard.rearm()
        stack.speed_up_next_start(say)

    def keep(self, piece: Piece) -> None:
        """Add the figures of a window to the record and print them."""
        self.record.keep(piece)
        self.write()
        self._screen.say(f"  {_describe(piece)}")

    def write(self) -> None:
        """Write the record."""
        write_record(self.folder / self.record.file, self.record)

    def _fail(self, run: PlannedRun, why: str) -> None:
        """Record the windows that a failed run did not measure as failed."""
        for rate in self.record.missing(run):
            self.keep(Piece(**dict(run), pageviews_per_s=rate, tag="", outcome=why))


def _describe(piece: Piece) -> str:
    if piece.outcome != "ok":
        return f"{piece.load}: {piece.outcome}"
    of = piece.figures
    if piece.pageviews_per_s is None:
        least = "at least " if piece.is_lower_bound else ""
        capacity = f"capacity {least}{of['capacity_per_s'] or 0:,.0f}/s"
        return f"{piece.load}: {capacity} {piece.remark}".rstrip()
    parts = [
        f"{title} {value:,.{places}f} {unit}"
        for title, key, places, unit in (
            ("lag p50", "lag_p50_ms", 0, "ms"),
            ("p99", "lag_p99_ms", 0, "ms"),
            ("CPU", "cpu_s_per_million", 1, "CPU-s per million"),
        )
        if (value := of.get(key)) is not None
    ]
    figures = f"{', '.join(parts)}; " if parts else ""
    return f"{piece.load}: {figures}{piece.verdict} {piece.remark}".rstrip()
