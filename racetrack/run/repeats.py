"""Repeated runs on fresh stacks in random order, as comparisons and scaling measurements make
them."""

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from racetrack import engines, terminal
from racetrack.clock import Clock
from racetrack.config import Settings, load
from racetrack.errors import BusyError, RacetrackError, SetupError, UsageError
from racetrack.results.folder import named_folder, write_record
from racetrack.results.repeats import Piece, PlannedRun, RepeatedRuns
from racetrack.results.search import PAGEVIEWS
from racetrack.run import loads
from racetrack.run.checks import require_usable, services_of
from racetrack.run.compared_run import ComparedRun, OpenSession, Phases, Prepare, fresh_run
from racetrack.stack.runtime import open_stack
from racetrack.terminal import Screen

Measure = Callable[[ComparedRun, PlannedRun], None]
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
        """Settings that the arguments contain."""
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
    """Return the planned runs. Each repeat contains every side, an engine with a number of
    replicas, once, in random order."""
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
    return loads.settings_for(PAGEVIEWS, engines.find_engine(run.engine), load(overrides))


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
        record.runtime = stack.runtime
        record.caveats[run.engine] = tuple(engine.caveats(settings))


def begin(record: RepeatedRuns) -> Path:
    """Create the folder of the plan, with its record; return the folder."""
    folder = named_folder(load().logs_folder, record.label)
    write_record(folder / record.file, record)
    return folder


class RunsOfPlan:
    """Makes runs of a plan. Every piece is written into the record as soon as it is measured."""

    def __init__(
        self,
        folder: Path,
        record: RepeatedRuns,
        phases: Phases,
        screen: Screen,
        guard: terminal.Guard,
        open_session: OpenSession,
        prepare: Prepare,
        clock: Clock,
    ) -> None:
        self._folder, self._record, self._phases = folder, record, phases
        self._screen, self._guard, self._clock = screen, guard, clock
        self._open_session, self._prepare = open_session, prepare

    def make_missing(self, measure: Measure, left_s: Callable[[], float]) -> None:
        """Make the runs that still lack windows: start each on a fresh stack, and call `measure`.
        If an engine fails, only its run ends. `left_s` returns the estimated time for all of them.

        Raises:
            RacetrackError: a cause other than the engine prevented a run.
            Interrupted: a signal was received. Measurements made so far are kept.
        """
        pending = [run for run in self._record.order if self._record.missing(run)]
        for number, run in enumerate(pending, start=1):
            self._screen.heading(
                f"== run {number} of {len(pending)}: {run}, repeat {run.repeat}; about"
                f" {left_s() / 60:.0f} minutes left"
            )
            began_s = self._clock.monotonic()
            try:
                with self.fresh(run) as fresh:
                    measure(fresh, run)
            except (UsageError, SetupError, BusyError):
                raise  # not the engine's fault
            except RacetrackError as error:
                self._screen.say(f"  {run} failed: {error}")
                self._fail(run, str(error))
            finally:
                self._record.minutes += (self._clock.monotonic() - began_s) / 60
                self.write()
            self._guard.rearm()

    def fresh(self, run: PlannedRun) -> AbstractContextManager[ComparedRun]:
        """Start a stack for a run; stop it at the end of the context."""
        settings = settings_for(self._record, run, self._folder.parent)
        make = (self._screen, self._guard, self._open_session, self._prepare, self._clock)
        return fresh_run(run.engine, self._record.run_label, settings, self._phases, *make)

    def keep(self, piece: Piece) -> None:
        """Add a piece to the record and print it."""
        self._record.keep(piece)
        self.write()
        self._screen.say(f"  {_describe(piece)}")

    def write(self) -> None:
        """Write the record."""
        write_record(self._folder / self._record.file, self._record)

    def _fail(self, run: PlannedRun, why: str) -> None:
        """Record the remaining pieces of a failed run as failed."""
        for rate in self._record.missing(run):
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
