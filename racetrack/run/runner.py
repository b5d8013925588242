"""Runner: makes the runs of a resolved plan, each on a fresh stack, and resumes them.

A run whose only window has samples of top is one experiment (`run/experiment.py`), with today's run
folder; any other has its windows in `run.json`.
"""

import hashlib
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from math import ceil
from operator import attrgetter
from pathlib import Path

from racetrack import engines, terminal
from racetrack.analysis.noise import shorter_ns
from racetrack.analysis.table import Row, rows_of
from racetrack.analysis.windows import FEWEST_RATES, cost_line
from racetrack.clock import SYSTEM_CLOCK, Clock
from racetrack.config import Settings, for_record, load, of_engine
from racetrack.engines.contract import Engine
from racetrack.errors import BusyError, RacetrackError, SetupError, UsageError
from racetrack.metrics import BROKER_CPU, MEMORY_READ
from racetrack.plan import variants
from racetrack.plan.memory import with_room
from racetrack.plan.model import Phase, Saturate, Verify, Window, load_of
from racetrack.plan.resolve import INPUT_RATES, Cell, ResolvedPlan, recorded
from racetrack.results.experiment import (
    ExperimentRecord,
    ExperimentRun,
    read_experiment,
    write_experiment,
)
from racetrack.results.folder import RunFolder, engine_folders, named_folder, read_run, run_beside
from racetrack.results.run import (
    SATURATION,
    PartOf,
    RunArguments,
    WindowRecord,
    broker_of,
    is_void,
    runtime_label,
)
from racetrack.run import experiment
from racetrack.run.burner import burning
from racetrack.run.checks import require_usable, services_of
from racetrack.run.experiment import run_once
from racetrack.run.lifecycle import (
    OpenSession,
    prepared,
    repeat_while_void,
    run_until_not_void,
    started_session,
)
from racetrack.run.phases import (
    Known,
    OnRow,
    PhaseRun,
    PlannedWindow,
    Scouted,
    keep_failed,
    planned_windows,
)
from racetrack.run.saturation import SessionLoad
from racetrack.run.session import Session
from racetrack.stack import applicability
from racetrack.stack.contract import Say, Stack
from racetrack.stack.runtime import choose, open_stack
from racetrack.terminal import Screen
from racetrack.workloads import load_profile
from racetrack.workloads.contract import find_workload

AUTO = "auto"
RUN_LABEL, SCOUT_LABEL, INPUT_LABEL = "planned", "scout", "input"
# The engine that only reads the input; it publishes its count once a second.
INPUT_ENGINE, INPUT_SETTINGS = "cal", {"CAL_CYCLE_MS": "1000", "READS_PER_SECOND": "0"}
Prepare = Callable[[str, Settings, Say], tuple[Engine, Stack]]
RunOnce = Callable[..., Path]  # as `racetrack.run.experiment.run_once`


def with_runtime(plan: ResolvedPlan, say: Say, folder: Path | None = None) -> ResolvedPlan:
    """Return a plan in which no run has RUNTIME=auto: all of these get the same runtime, since
    figures of several can't be compared. If runs in the experiment's `folder` began with auto, it
    is theirs; otherwise it is chosen, and `say` gets a line with the choice and the reason."""
    settings = {cell.variant: load(plan.settings_of(cell)) for cell in plan.cells}
    auto = {name: own for name, own in settings.items() if own.runtime == AUTO}
    if not auto:
        return plan
    runtime = _runtime_of_runs(folder, auto) if folder else ""
    if not runtime:
        engine_of = {cell.variant: engines.find_engine(cell.engine) for cell in plan.cells}
        needed = chain.from_iterable(
            services_of(engine_of[name], own) for name, own in auto.items()
        )
        deciding = max(
            auto.values(), key=lambda own: (bool(own.kafka_bootstrap_servers), own.airgap)
        )
        runtime, line = choose(deciding, [*dict.fromkeys(needed)])
        say(line)
    cells = (
        cell.model_copy(update={"settings": {**cell.settings, "RUNTIME": runtime}})
        if cell.variant in auto
        else cell
        for cell in plan.cells
    )
    return plan.model_copy(update={"cells": tuple(cells)})


def _runtime_of_runs(folder: Path, variants: Collection[str]) -> str:
    """Return the runtime of the first run of these variants; "" if none has begun."""
    tags = (run.tag for run in read_experiment(folder).runs if run.variant in variants and run.tag)
    paths = (run_beside(folder, tag) for tag in tags)
    return next((read_run(path).runtime for path in paths if path), "")


def keep_runtime(folder: Path) -> None:
    """Write the runtime for which RUNTIME=auto stands into the record of an experiment, so that its
    remaining runs have the same."""
    record = read_experiment(folder)
    plan = recorded(record)
    chosen = with_runtime(plan, lambda _: None, folder)
    if chosen != plan:
        content = chosen.model_dump(mode="json", by_alias=True)
        write_experiment(folder, record.model_copy(update={"plan": content}))


def require_possible(plan: ResolvedPlan) -> tuple[str, str]:
    """Check, before the first run, that each variant can run. Return the runtime and the broker.

    Raises:
        UsageError, SetupError: a variant can't run.
    """
    _require_containers(plan)
    places = [
        _require_possible(cell, plan.settings_of(cell))
        for cell in {(cell.variant, *cell.loads[:1]): cell for cell in plan.cells}.values()
    ]
    return places[0]


def _require_containers(plan: ResolvedPlan) -> None:
    """Check that containers can run the services of all runs that are to be in containers. One that
    can't run as a process may be why all are in containers; the error then names it.

    Raises:
        UsageError, SetupError: they can't.
    """
    settings = {cell.engine: load(plan.settings_of(cell)) for cell in plan.cells}
    contained = {name: own for name, own in settings.items() if own.runtime == "compose"}
    services = (services_of(engines.find_engine(name), own) for name, own in contained.items())
    if contained:
        needed = [*dict.fromkeys(chain.from_iterable(services))]
        open_stack(next(iter(contained.values())), needed, lambda _: None)


def _require_possible(cell: Cell, overrides: Mapping[str, str]) -> tuple[str, str]:
    settings, engine = load(overrides), engines.find_engine(cell.engine)
    started = services_of(engine, settings)
    stack = open_stack(settings, started, lambda _: None)
    for name in cell.own:
        applicability.require_applicable(name, stack.runtime, airgap=settings.airgap)
        owners = [member for member in engine.members if name.lower() in of_engine(member.name)]
        services = chain.from_iterable(owner.services for owner in owners)
        applicability.require_read(name, [*services], started)
    if cell.is_single:
        experiment.require_possible(cell.engine, arguments_of(cell), settings)
    else:
        require_usable(engine, stack)
    label = runtime_label(stack.runtime, for_record(settings))
    return label, broker_of(label, for_record(settings))


def arguments_of(cell: Cell, share_per_s: int = 0) -> RunArguments:
    """Return the arguments of a run with one window. `share_per_s` is the rate to which a share of
    a capacity comes. A profile is sampled until its end."""
    window = next(phase for phase in cell.phases if isinstance(phase, Window))
    offered = load_of(cell.loads[0])
    assert window.top  # noqa: S101
    samples, per_s = window.top.samples, offered.per_s or share_per_s
    if offered.profile:
        profile = load_profile.parse(offered.profile)
        samples = max(samples, ceil(profile.duration_s / window.top.every_s))
        per_s = max(1, round(profile.mean_per_s))
    return RunArguments(
        events_per_s=per_s,
        share=None if offered.is_common else offered.share,
        load=offered.profile,
        wait_s=window.settle_s,
        samples=samples,
        delay_s=window.top.every_s,
        verify=any(isinstance(phase, Verify) for phase in cell.phases),
        faults=window.faults,
        decide_within_s=cell.decide_within_s,
    )


def hash_of(phases: Iterable[Phase]) -> str:
    """Return a hash of phases without their loads."""
    texts = [phase.model_dump_json(exclude={"loads", "order", "once"}) for phase in phases]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8]


def burnt_file(number: int) -> str:
    """Return the file, in the folder of an experiment, with the CPU time of the program that
    disturbed a run."""
    return f"burnt_{number}.csv"


def begin(plan: ResolvedPlan, command: Sequence[str] = ()) -> Path:
    """Create the folder of an experiment with its record; return the folder."""
    label = Path(plan.name).stem
    folder = named_folder(load().logs_folder, label)
    record = ExperimentRecord(
        name=plan.name, command=shlex.join(command), seed=plan.seed, plan={}, runs=()
    )
    write_experiment(folder, _with_plan(record, plan))
    return folder


def _with_plan(record: ExperimentRecord, plan: ResolvedPlan) -> ExperimentRecord:
    """Return the record of an experiment of which no run has begun."""
    runs = (
        ExperimentRun(variant=cell.variant, repeat=cell.repeat, loads=cell.loads, cell=number)
        for number, cell in enumerate(plan.cells)
    )
    content = plan.model_dump(mode="json", by_alias=True)
    return record.model_copy(update={"plan": content, "runs": tuple(runs)})


class Runner:
    """Makes the remaining runs of an experiment. If an engine fails, only its run ends."""

    def __init__(
        self,
        folder: Path,
        screen: Screen,
        guard: terminal.Guard,
        *,
        on_row: OnRow = lambda _: None,
        open_session: OpenSession = Session,
        prepare: Prepare = prepared,
        run_once: RunOnce = run_once,
        describe: experiment.Describe = experiment.name_folder,
        runs_on: Screen | None = None,
        before_stack: Callable[[], None] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create a runner of the experiment in a folder. What its runs print goes to `runs_on`, by
        default `screen`. `before_stack` is called before each stack. See `PhaseRun` for `on_row`,
        and `run_once` for `describe`."""
        self.folder, self.record = folder, read_experiment(folder)
        self.plan = recorded(self.record)
        self._screen, self._guard, self._clock = screen, guard, clock
        self._runs_on = runs_on or screen
        self._before_stack = before_stack or (lambda: None)
        self._on_row, self._run_once, self._describe = on_row, run_once, describe
        self._open_session, self._prepare = open_session, prepare
        self._began_s = self._void_s = 0.0  # start of the current run; its time on void windows
        self._failed_scouts: dict[str, str] = {}  # variants whose scout failed, and why

    @property
    def left_s(self) -> float:
        """Estimated time for the remaining runs, in seconds."""
        return self._left_s(self._pending())

    def _pending(self) -> list[int]:
        return [number for number in range(len(self.plan.cells)) if not self._is_done(number)]

    def _left_s(self, pending: Sequence[int]) -> float:
        failed = self._failed_scouts
        cells = [self.plan.cells[number] for number in pending]
        left: dict[str, object] = {
            "cells": tuple(cell for cell in cells if cell.variant not in failed),
            "variants": tuple(name for name in self._unscouted() if name not in failed),
        }
        if self.record.input_alone:
            left["input_alone_s"] = 0.0
        return self.plan.model_copy(update=left).estimated_s

    def run(self) -> ExperimentRecord:
        """Scout, if the plan asks for it, and make the runs that are not done.

        A variant whose scout fails is left out.

        Raises:
            RacetrackError: a cause other than an engine prevented a run.
            Interrupted: a signal was received. What was measured so far is kept.
        """
        for variant in self._unscouted():
            self._scout(variant)
        if self.plan.input_alone_s and not self.record.input_alone:
            self._measure_input()
        self._make_room()
        pending = self._pending()
        for place, number in enumerate(pending, start=1):
            cell = self.plan.cells[number]
            left_s = self._left_s(pending[place - 1 :])
            self._screen.heading(
                f"== run {place} of {len(pending)}: {cell}; about {left_s / 60:.0f} minutes left"
            )
            if why := self._why_capacity_unknown(number):
                self._note(number, outcome=why)
                self._screen.say(f"  {cell}: {why}")
                continue
            make = self._make_single if cell.is_single else self._make
            is_quiet = self._runs_on is not self._screen
            is_left = True
            while is_left:
                with (
                    self._timed(number),
                    self._disturbed(number, cell),
                    self._screen.live(str(cell)) if is_quiet else nullcontext(),
                ):
                    is_left = make(number, cell)
                self._guard.rearm()
        return self.record

    def _make_room(self) -> None:
        """Divide runs whose events do not fit on a heap among several stacks, now that capacities
        are known as far as they can be before the first run."""
        if any(run.tag for run in self.record.runs):
            return
        roomy = with_room(self.plan, self.record.scouted_per_s)
        for remark in [remark for remark in roomy.remarks if remark not in self.plan.remarks]:
            self._screen.say(f"  {remark}")
        self.plan, self.record = roomy, _with_plan(self.record, roomy)
        write_experiment(self.folder, self.record)

    @contextmanager
    def _timed(self, number: int | None = None) -> Iterator[None]:
        """Add the time in the context to the experiment's and, without that of void windows, to a
        run's."""
        self._began_s, self._void_s = self._clock.monotonic(), 0.0
        try:
            yield
        finally:
            self.record.minutes += (self._clock.monotonic() - self._began_s) / 60
            if number is not None and self._runs_of(number)[-1].tag:
                self._note_time(number)
            write_experiment(self.folder, self.record)

    def _note_time(self, number: int) -> None:
        """Write how long a run took so far. It is written after each window, so that it is known
        after a `kill -9`, too."""
        took_s = self._clock.monotonic() - self._began_s - self._void_s
        self._note(number, took_s=took_s)

    @contextmanager
    def _disturbed(self, number: int, cell: Cell) -> Iterator[None]:
        """Let another program use as many cores as the plan says, inside the context."""
        if not cell.disturb:
            yield
            return
        with burning(cell.disturb, self.folder / burnt_file(number)):
            yield

    def _unscouted(self) -> list[str]:
        known = self.record.scouted_per_s
        return [name for name in self.plan.variants if self.plan.scout_s and name not in known]

    def _scout(self, variant: str) -> None:
        self._screen.heading(f"== scout of {variant}")
        cell = next(planned for planned in self.plan.cells if planned.variant == variant)

        def once() -> Scouted:
            with self._aside(cell, SCOUT_LABEL) as run:
                return run.scout(self.plan.scout_s)

        with self._timed():
            try:
                made = repeat_while_void(once, attrgetter("why_void"), self._screen, self._guard)
                if made.why_void:
                    raise RacetrackError(made.why_void)
            except (UsageError, SetupError, BusyError):
                raise  # not the engine's fault
            except RacetrackError as error:
                self._failed_scouts[variant] = str(error)
                self._screen.say(f"  the scout of {variant} failed, so it is left out: {error}")
            else:
                self.record.scouted_per_s = {**self.record.scouted_per_s, variant: made.per_s}
                self._screen.say(f"  {variant} counted {made.per_s:,.0f}/s at saturation")
        self._guard.rearm()

    def _measure_input(self) -> None:
        """Measure what the broker uses while a client only reads the input, at the lowest, a middle
        and the highest rate of the plan, or at INPUT_RATES if it finds its rates later. Without
        this, one figure is missing, so a failure is only printed."""
        planned = chain.from_iterable(map(self._planned, self.plan.cells))
        rates = sorted({window.per_s for window in planned if window.per_s})
        if len(rates) < FEWEST_RATES:
            rates = [*INPUT_RATES]
        chosen = {rates[0], rates[len(rates) // 2], rates[-1]}
        self._screen.heading("== the input alone")
        first = self.plan.cells[0]
        _, _, stack = self._prepared(first)
        if stack.runtime not in engines.find_engine(INPUT_ENGINE).runtimes:
            self._screen.say(f"  not measured: {INPUT_ENGINE} can't run in {stack.runtime}")
            return
        settings = {**first.settings, **INPUT_SETTINGS, "RUNTIME": stack.runtime}
        cell = first.model_copy(update={"engine": INPUT_ENGINE, "settings": settings})
        with self._timed():
            try:
                with self._aside(cell, INPUT_LABEL) as run:
                    measured = run.measure_input([*chosen], self.plan.input_alone_s)
            except (UsageError, SetupError, BusyError):
                raise
            except RacetrackError as error:
                measured = []
                self._screen.say(f"  not measured: {error}")
        self.record.input_alone = tuple(measured) if len(measured) >= FEWEST_RATES else ()
        write_experiment(self.folder, self.record)
        for alone in measured:
            self._screen.say(
                f"  {alone.per_s:,.0f}/s: broker {BROKER_CPU.text(alone.broker_cpu_pct)}"
            )
        self._guard.rearm()

    @contextmanager
    def _aside(self, cell: Cell, label: str) -> Iterator[PhaseRun]:
        """Start a stack for a run that the plan does not have, whose folder has this label; stop
        everything at the end of the context. See `_started`."""
        settings, engine, stack = self._prepared(cell)
        self._before_stack()
        folder, known = self._new_folder(cell, settings, label), Known({})
        with self._started(cell, engine, stack, folder, settings, (), known, self._on_row) as run:
            yield run

    def _runs_of(self, number: int) -> list[ExperimentRun]:
        return [run for run in self.record.runs if run.cell == number]

    def _is_done(self, number: int) -> bool:
        """Return whether a run has ended without a void window, so that it need not be resumed. A
        failure is a result."""
        last = self._runs_of(number)[-1]
        if not last.tag:
            return False  # it has not begun, perhaps because an earlier stack was void
        if self.plan.cells[number].disturb:
            return last.outcome is not None  # it is void on purpose
        if last.outcome != "ok" or self.plan.cells[number].is_single:
            return last.is_done
        known, cell = self._windows(number), self.plan.cells[number]
        return all(window.name in known for window in self._planned(cell))

    def _windows(self, number: int) -> dict[str, WindowRecord]:
        """Return the windows that the folders of a run contain, without void ones."""
        known: dict[str, WindowRecord] = {}
        for run in self._runs_of(number):
            if run.tag and (folder := run_beside(self.folder, run.tag)):
                windows = read_run(folder).windows
                known |= {window.name: window for window in windows if not is_void(window.outcome)}
        return known

    def _known(self, number: int) -> Known:
        """Return what is known of a run, from its earlier folders and from earlier stacks of the
        same repeat."""
        cell = self.plan.cells[number]
        earlier = [at for at, other in enumerate(self.plan.cells) if cell.follows(other)]
        saturated = [window for at in earlier if (window := self._windows(at).get(SATURATION))]
        used_s = sum(run.took_s for at in (*earlier, number) for run in self._runs_of(at))
        capacity = saturated[-1] if saturated and saturated[-1].outcome == "ok" else None
        since_s = self._clock.monotonic() - used_s
        alone = self.record.input_alone
        broker = cost_line([(point.per_s, point.broker_cpu_pct) for point in alone])
        return Known(self._windows(number), capacity, since_s, broker, self.record.quiet_read_ns)

    def _planned(self, cell: Cell) -> list[PlannedWindow]:
        scouted = self.record.scouted_per_s
        return planned_windows(cell, scouted.get(cell.variant), min(scouted.values(), default=None))

    def _note(self, number: int, **values: str | float | None) -> None:
        """Write what became of the latest folder of a run."""
        last = self._runs_of(number)[-1]
        self.record.runs = tuple(
            run.model_copy(update=values) if run is last else run for run in self.record.runs
        )
        write_experiment(self.folder, self.record)

    def _note_folder(self, number: int, tag: str) -> None:
        """Write the name of a new folder of a run. A resumed run has an entry for each folder."""
        last = self._runs_of(number)[-1]
        if last.tag:
            again = last.model_copy(update={"tag": None, "outcome": None, "took_s": 0.0})
            place = self.record.runs.index(last) + 1
            self.record.runs = (*self.record.runs[:place], again, *self.record.runs[place:])
        self._note(number, tag=tag)

    def _settings(self, cell: Cell) -> Settings:
        here = {"LOGS_FOLDER": str(self.folder.parent.resolve())}
        return load({**self.plan.settings_of(cell), **here})

    def _part_of(self, cell: Cell) -> PartOf:
        stacks = [
            other.phases
            for other in self.plan.cells
            if (other.variant, other.repeat) == (cell.variant, cell.repeat) and not other.is_single
        ]
        return PartOf(
            experiment=self.folder.name,
            variant=self._label_of(cell),
            repeat=cell.repeat,
            phases="" if cell.is_single else hash_of(chain.from_iterable(stacks)),
        )

    def _label_of(self, cell: Cell) -> str:
        """Return the label of a run's variant, without the selected views: runs with others are in
        another place."""
        selected_by = find_workload(self._settings(cell).workload).selected_by.upper()
        return variants.without(cell.variant, selected_by) if selected_by else cell.variant

    def _make_single(self, number: int, cell: Cell) -> bool:
        """Make a run with one window, and repeat it while it is void. Return False: no window is
        left."""
        (window,) = self._planned(cell)
        arguments, settings = arguments_of(cell, window.per_s or 0), self._settings(cell)
        screen, guard, part_of = self._runs_on, self._guard, self._part_of(cell)

        def once() -> Path:
            self._before_stack()
            return self._run_once(
                cell.engine,
                arguments,
                settings,
                screen,
                guard,
                part_of=part_of,
                describe=self._describe,
            )

        made = once() if cell.disturb else run_until_not_void(once, self._screen, guard)
        self._note(number, tag=made.name, outcome=read_run(made).outcome)
        for row in _rows(made):
            self._on_row(row)
        return False

    def _make(self, number: int, cell: Cell) -> bool:
        """Make a run with several windows, without those that its earlier folders contain. Return
        whether windows are left for another stack; not after a void one, which would be void again
        on each further stack."""
        known, planned = self._known(number), self._planned(cell)
        folder: RunFolder | None = None
        outcome, at, is_left = "ok", "", False
        try:
            settings, engine, stack = self._prepared(cell)
            self._before_stack()
            folder = self._new_folder(cell, settings, RUN_LABEL)
            self._note_folder(number, folder.tag)
            started = self._started(
                cell, engine, stack, folder, settings, planned, known, partial(self._show, number)
            )
            with started as run:
                try:
                    run.carry_out()
                finally:
                    self._void_s, at = run.void_s, run.at
        except (UsageError, SetupError, BusyError):
            raise  # not the engine's fault
        except RacetrackError as error:
            self._screen.say(f"  {cell} failed: {error}")
            # A window may be void, and others then have no capacity to refer to.
            outcome = next(iter(_voids(folder)), str(error))
            if folder and not is_void(outcome):
                keep_failed(planned, known.windows, outcome, at, folder, self._on_row)
        else:
            voids = _voids(folder)
            outcome = next(iter(voids), outcome)
            is_left = run.without_room and not voids
        if is_left:
            self._screen.say("  other loads follow on a fresh stack, since the heap fills up")
        self._note(number, outcome=outcome)
        return is_left

    def _show(self, number: int, row: Row) -> None:
        self.record.quiet_read_ns = shorter_ns(
            self.record.quiet_read_ns, row.values.get(MEMORY_READ.key)
        )
        self._note_time(number)
        self._on_row(row)

    def _why_capacity_unknown(self, number: int) -> str:
        """Return why a run can't begin: the capacity to which its phases refer is unknown. If it is
        because the stack that was to measure it was void, this run is void, too. What a scout found
        does not stand for it: the phases refer to that of the repeat."""
        cell = self.plan.cells[number]
        if failed := self._failed_scouts.get(cell.variant):
            return f"its capacity is unknown, since its scout failed: {failed}"
        saturating = [
            at
            for at, other in enumerate(self.plan.cells)
            if cell.follows(other) and any(isinstance(phase, Saturate) for phase in other.phases)
        ]
        if not (cell.needs_capacity and saturating):
            return ""
        outcome = str(self._runs_of(saturating[-1])[-1].outcome)
        has_failed = outcome != "ok" and not is_void(outcome)
        capacity = self._known(number).capacity
        if not capacity:
            return outcome if is_void(outcome) else f"its capacity is unknown: {outcome}"
        # With a scout, the engine need not have been the limit.
        is_unknown = capacity.at_least and (has_failed or not self.plan.scout_s)
        return f"its capacity is unknown: {capacity.remark}" if is_unknown else ""

    def _prepared(self, cell: Cell) -> tuple[Settings, Engine, Stack]:
        settings = self._settings(cell)
        return settings, *self._prepare(cell.engine, settings, self._screen.say)

    def _new_folder(self, cell: Cell, settings: Settings, label: str) -> RunFolder:
        folder = RunFolder.create(settings.logs_folder, cell.engine, label)
        with folder.recording() as record:
            record.part_of = self._part_of(cell)
        return folder

    @contextmanager
    def _started(
        self,
        cell: Cell,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        settings: Settings,
        planned: Sequence[PlannedWindow],
        known: Known,
        on_row: OnRow,
    ) -> Iterator[PhaseRun]:
        """Start a stack for a run and load the engine's demo script; stop everything at the end of
        the context.

        Raises:
            RacetrackError: a component of the stack failed.
            Interrupted: a signal was received.
        """
        started = started_session(
            engine, stack, folder, self._screen, self._guard, self._open_session
        )
        log = self._screen.copied_to(folder.open_for_lines("start.log"))
        with log, started as session:
            load = SessionLoad(session, folder.path, settings)
            yield PhaseRun(
                cell,
                planned,
                known,
                load,
                folder,
                settings,
                self._screen,
                self._guard,
                on_row,
            )
        self._guard.rearm()
        stack.speed_up_next_start(self._screen.say)


def _voids(folder: RunFolder | None) -> list[str]:
    """Return the outcomes of the void windows of a run, if it has a folder."""
    windows = read_run(folder.path).windows if folder else ()
    return [window.outcome for window in windows if is_void(window.outcome)]


def _rows(folder: Path) -> list[Row]:
    """Return the rows of a run with one window."""
    return [row for path in engine_folders(folder) for row in rows_of(read_run(path), path)]
