"""A live session: engines on one input, whose load and services a user changes while they run."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from racetrack import terminal
from racetrack.analysis import curves, outcome
from racetrack.analysis.curves import RecentCurves
from racetrack.clock import now_ms
from racetrack.config import Settings, for_record
from racetrack.engines.contract import Engine
from racetrack.errors import EngineFailed, RacetrackError, SetupError
from racetrack.live.contract import Action, Message, Refused
from racetrack.live.history import History
from racetrack.probes.heap import HeapProbe
from racetrack.results.folder import RunFolder, shown
from racetrack.results.run import DoneFault, FaultLog, LiveLog, Measured, RunArguments, Window
from racetrack.run import checks
from racetrack.run.lifecycle import (
    OpenSession,
    damage_explained,
    describe_run,
    prepared,
    recorded_run,
)
from racetrack.run.live.figures import CollectionWatch, Figures, VerdictWatch
from racetrack.run.live.load import ENDING, RUNNING, STARTING, LiveLoad, MemoryWatch, Now
from racetrack.run.live.messages import READS, Messages
from racetrack.run.live.record import BY_SESSION, LiveArguments, SessionLog
from racetrack.run.live.services import FAILED, NEEDS, Services
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from racetrack.workloads.contract import find_workload, run_label, work_of

TICK_S = 1.0
TRACER_RATE, TRACERS_PER_PARTITION_PER_S = "tracer_events_per_second", 4
SAMPLE_AT_LEAST_EVERY_MS = 900
ENDS = "The session is ending."
CTRL_C = 130  # exit code of an interruption by SIGINT


class Live:
    """A session. Implements `racetrack.live.contract.LiveSession`; the main thread executes other
    threads' requests."""

    def __init__(
        self,
        arguments: LiveArguments,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        screen: Screen,
        open_session: OpenSession = Session,
    ) -> None:
        self._arguments, self._engine, self._stack = arguments, engine, stack
        self._folder, self._screen = folder, screen
        self._session = open_session(engine, stack, folder, screen, TICK_S)
        self._recent, self._log = RecentCurves(), SessionLog(folder)
        self._session.hear_curves(self._recent.add)
        self._figures = Figures(self._session, self._recent, stack.settings)
        self._history = History()
        self._measuring = threading.Lock()
        self._requests: queue.Queue[tuple[Action, Future[None]]] = queue.Queue()
        self._services = Services(
            engine, stack, self._session.control, self._log.add, self._lose_counts
        )
        self._verdicts = {
            member.name: VerdictWatch(member.name, self._recent) for member in engine.members
        }
        own = (*engine.services_in(stack.settings), "broker")
        watched = [name for name in own if name in checks.services_of(engine, stack.settings)]
        self._heaps = HeapProbe(partial(stack.pids, watched), folder)
        self._collections: CollectionWatch | None = None
        self._now = Now()
        self._load = LiveLoad(
            self._now,
            self._session,
            self._log,
            self._verdicts.values(),
            MemoryWatch(stack, self._heaps),
            screen.say,
        )
        self._messages = Messages(
            self._now, stack, folder, self._session, self._log, self._services, self._verdicts
        )
        self._began_ms = now_ms()
        self._load_from_s, self._load_from_ms = 0.0, 0
        self._end: Message | None = None
        self._end_text = ""
        self._schedule = list(arguments.schedule)
        self._recorded_outages: tuple[DoneFault, ...] = ()

    # Requests of pages, from any thread

    def hello(self) -> Message:
        """See `LiveSession`."""
        with self._measuring:
            history = self._history.as_columns()
        return self._messages.hello(history)

    def sample(self) -> Message:
        """See `LiveSession`."""
        at_ms = now_ms()
        with self._measuring:
            values = {**self._figures.fast(at_ms), **self._figures.slow()}
            rounded = {
                name: None if value is None else round(value, 3) for name, value in values.items()
            }
            self._history.add(at_ms, rounded)
            self._now.figures = {**self._now.figures, **rounded}
        return {"at_ms": at_ms, "values": rounded}

    def latest(self) -> Mapping[str, float | None]:
        """See `LiveSession`."""
        self.sample()
        return self._now.figures

    def state(self) -> Message:
        """See `LiveSession`."""
        return self._messages.state()

    def events_after(self, number: int) -> Sequence[Message]:
        """See `LiveSession`."""
        return self._log.after(number)

    def end(self) -> Message | None:
        """See `LiveSession`."""
        return self._end

    def act(self, action: Action) -> Future[None]:
        """See `LiveSession`."""
        if self._now.phase == STARTING:
            raise Refused(409, "The session is still starting.")
        if self._end_text or self._now.phase == ENDING:
            raise Refused(503, ENDS)
        done: Future[None] = Future()
        self._requests.put((action, done))
        return done

    # The session itself, in the main thread

    def run(self, guard: terminal.Guard) -> str:
        """Run the session until the user ends it. Return the outcome: `ok`, or what failed.

        Raises:
            SetupError: a component of the stack could not be installed.
            Interrupted: a signal was received before the load began, or it was not Ctrl-C.
        """
        with self._screen.copied_to(self._folder.open_for_lines("start.log")):
            self._describe()
            try:
                with (
                    damage_explained(self._stack),
                    recorded_run(self._folder, guard, self._stop) as recorded,
                ):
                    self._start()
                    self._steer(guard)
                    recorded.text = self._finish()
                return recorded.text
            except SetupError:
                raise
            except RacetrackError as error:
                self._log.add("failed", str(error))
                self._screen.say(f"The session failed: {error}\nLogs: {shown(self._folder.path)}")
                return str(error)

    def _describe(self) -> None:
        profile = self._arguments.profile
        arguments = RunArguments(
            events_per_s=self._arguments.per_s,
            wait_s=0,
            samples=1,
            delay_s=TICK_S,
            load=str(profile) if profile else None,
        )
        describe_run(self._folder, self._engine, self._stack, arguments)
        with self._folder.recording() as run:
            run.live = LiveLog(from_ms=self._began_ms, replay_of=self._arguments.replay_of)

    def _start(self) -> None:
        on = run_label(self._stack.runtime, work_of(self._stack.settings.model_dump()))
        path = shown(self._folder.path)
        self._screen.heading(f"{self._engine.title}, live ({on}), into {path}")
        self._log.add("start", f"starting {self._engine.title}")
        with self._folder.step("start the stack and the load generator"):
            self._session.start_stack()
        with self._folder.step("run the demo in the engine and begin to sample its delay"):
            self._session.run_demo()
            curves.import_reader()
            self._session.begin(self._heaps)
        own = self._engine.services_in(self._stack.settings)
        self._collections = CollectionWatch({name: self._stack.log_of(name) for name in own})
        self._now.phase, self._load_from_s, self._load_from_ms = RUNNING, time.monotonic(), now_ms()
        with self._folder.recording() as run:
            run.live = LiveLog(from_ms=self._load_from_ms, replay_of=self._arguments.replay_of)
        profile = self._arguments.profile
        arguments = {"profile": str(profile)} if profile else {"per_s": self._arguments.per_s}
        self._do(Action("load" if profile else "rate", arguments, BY_SESSION))
        self._log.add("ready", "all views are there")

    def _steer(self, guard: terminal.Guard) -> None:
        """Carry out the requested actions, and check the session once a second, until the session
        ends."""
        due_s = time.monotonic()
        try:
            with guard.restoring():
                while not self._end_text:
                    self._answer_next(max(0.0, self._next_s(due_s) - time.monotonic()))
                    self._replay()
                    if time.monotonic() >= due_s:
                        self._tick()
                        due_s = max(due_s + TICK_S, time.monotonic())
        except terminal.Interrupted as interrupted:
            if self._now.phase != RUNNING or interrupted.exit_code != CTRL_C:
                raise
            guard.disarm()
            self._end_text = "Ended by Ctrl-C."

    def _next_s(self, tick_s: float) -> float:
        """Return the time (monotonic clock) of the next check, or of the next action of a replay if
        that is earlier."""
        if not self._schedule:
            return tick_s
        return min(tick_s, self._load_from_s + self._schedule[0].at_s)

    def _replay(self) -> None:
        """Carry out the actions of a replay that are due."""
        while self._schedule and time.monotonic() >= self._load_from_s + self._schedule[0].at_s:
            action = self._schedule.pop(0).action
            done: Future[None] = Future()
            self._answer(action, done)
            if (failed := done.exception()) is not None:
                self._log.add("warning", f"not replayed: {action.name}: {failed}")

    def _answer_next(self, within_s: float) -> None:
        """Wait for an action, execute it, and answer the page."""
        with suppress(queue.Empty):
            self._answer(*self._requests.get(timeout=within_s))

    def _answer(self, action: Action, done: "Future[None]") -> None:
        if not done.set_running_or_notify_cancel():
            return  # the page no longer waits for an answer
        try:
            self._do(action)
        except Refused as refused:
            done.set_exception(refused)
        except RacetrackError as error:
            done.set_exception(Refused(409, str(error)))
        else:
            done.set_result(None)

    def _tick(self) -> None:
        self._check()
        self._load.watch_memory()
        if self._collections:
            for service, text in self._collections.new(time.monotonic()):
                self._log.add("collection", text, service)
        now = now_ms()
        for verdict in self._verdicts.values():
            verdict.update(now)
        self._load.end_profile_if_over()
        if now - self._history.last_ms >= SAMPLE_AT_LEAST_EVERY_MS:
            self.sample()

    def _check(self) -> None:
        """Check engines and services. An engine that fails does not end the session.

        Raises:
            RacetrackError: another check failed.
        """
        failed = {name for name, status in self._services.status.items() if status == FAILED}
        for run in self._session.runs:
            if run.engine.name not in failed:
                try:
                    self._session.check_engine(run)
                except EngineFailed as error:
                    self._services.fail(run.engine.name, str(error))
                    failed.add(run.engine.name)
        self._session.check(failed)
        self._record_outages()

    def _record_outages(self) -> None:
        """Write outages into `run.json` if they have changed."""
        outages = self._services.faults
        if outages != self._recorded_outages:
            self._recorded_outages = outages
            with self._folder.recording() as run:
                run.faults = FaultLog(from_ms=self._load_from_ms, done=outages)

    # Actions

    def _do(self, action: Action) -> None:
        """Carry out and record an action.

        Raises:
            Refused: the action can't be carried out now.
            RacetrackError: the action failed.
        """
        given = action.arguments
        if action.name in NEEDS:
            self._do_to_service(action, str(given["target"]))
            return
        carry_out: Mapping[str, Callable[[], object]] = {
            "rate": lambda: self._load.set_rate(action, int(given["per_s"])),
            "load": lambda: self._load.set_profile(action, str(given["profile"])),
            "events": lambda: self._set_events(action, str(given["kind"]), int(given["per_s"])),
            "note": lambda: self._log.record(action, str(given["text"]), begins_segment=False),
            "end": lambda: self._set_end(action),
        }
        carry_out[action.name]()

    def _set_events(self, action: Action, kind: str, per_s: int) -> None:
        if kind != READS:
            self._load.set_kind(action, kind, per_s)
        elif why := self._services.why_no_reads():
            raise Refused(409, why)
        else:
            self._load.set_reads(action, per_s)

    def _set_end(self, action: Action) -> None:
        self._log.record(action, "end", begins_segment=False)
        self._end_text = "Ended by the user." if action.by == "user" else "The replay is over."

    def _do_to_service(self, action: Action, target: str) -> None:
        if why := self._services.why_not(action.name, target):
            raise Refused(409, why)
        self._load.begin_segment(action, f"{action.name} {target}")
        self._services.begin(action.name, target)

    def _finish(self) -> str:
        """End the load and complete the record; return the outcome."""
        self._now.phase = ENDING
        self._screen.heading(f"{self._end_text} Stopping everything")
        self._services.stop()
        self._record_outages()
        self._session.pause()
        until_ms = now_ms()
        window = Window(start_ms=self._load_from_ms, end_ms=until_ms)
        measured = Measured(window=window, rate_set_ms=self._load_from_ms, cpu_s={})
        with self._folder.recording() as run:
            run.live = LiveLog(
                from_ms=self._load_from_ms,
                until_ms=until_ms,
                actions=self._log.actions,
                replay_of=self._arguments.replay_of,
            )
        outcomes = {name: self._outcome_of(name) for name in self._verdicts}
        for name, text in outcomes.items():
            with self._folder.recording_of(name) as run:
                run.measured, run.outcome = measured, text
        self._screen.say(f"  {shown(self._folder.path)}")
        return outcome.joined(outcomes)

    def _outcome_of(self, name: str) -> str:
        if failed := self._services.texts.get(name):
            return failed
        if not self._recent.has_deleted_unread(name):
            return "ok"
        recorded = curves.read(self._folder.of(name).path)
        settings = for_record(self._stack.settings)
        return outcome.deleted_unread(curves.deleted_unread(recorded), settings) or "ok"

    def _stop(self) -> None:
        self._now.phase = ENDING
        self._end_text = self._end_text or "The session failed; see the terminal."
        self._refuse_the_rest()
        self._services.stop()
        try:
            with self._folder.step("stop everything"):
                self._session.stop()
        finally:
            self._log.close()
            self._end = {"text": self._end_text, "folder": shown(self._folder.path)}

    def _refuse_the_rest(self) -> None:
        """Refuse the actions that came after the end."""
        with suppress(queue.Empty):
            while True:
                _, done = self._requests.get_nowait()
                if done.set_running_or_notify_cancel():
                    done.set_exception(Refused(503, ENDS))

    def _lose_counts(self, engine: str) -> None:
        self._recent.forget(engine)
        for run in self._session.runs:
            if run.engine.name == engine:
                run.forget_views()


def open_live(
    engine_name: str, arguments: LiveArguments, settings: Settings, screen: Screen
) -> Live:
    """Prepare a session with a folder of its own; start nothing.

    Tracer events show how old the contents of views are, so they are enabled if the workload has
    them.

    Raises:
        UsageError, SetupError, BusyError: the session could not begin.
    """
    if TRACER_RATE in find_workload(settings.workload).rates:
        per_s = settings.tracer_events_per_second or TRACERS_PER_PARTITION_PER_S
        per_s = max(per_s, TRACERS_PER_PARTITION_PER_S * settings.events_partitions)
        settings = settings.model_copy(update={TRACER_RATE: per_s})
    engine, stack = prepared(engine_name, settings, screen.say)
    folder = RunFolder.create(settings.logs_folder, engine_name, "live")
    return Live(arguments, engine, stack, folder, screen)
