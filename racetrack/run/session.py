"""Session: the stack, the demo, the load and the probes of one run.

A session only carries out operations. Experiments and capacity searches decide which and when.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from racetrack import host
from racetrack.analysis import curves, raw, recovery
from racetrack.analysis.noise import describe_quotas
from racetrack.analysis.recovery import NORMAL_WITHIN_S
from racetrack.clock import SYSTEM_CLOCK, Clock, now_ms
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError
from racetrack.probes import heap, nodes, top
from racetrack.probes.base import CurvesFile, HadOutage, Probe
from racetrack.probes.broker import EndOffsetsProbe, TopicOffsets, TopicsProbe
from racetrack.probes.cdc import ConnectorProbe
from racetrack.probes.loadgen import LOAD_CSV, ArrivalsProbe, Control, LoadDriver, Settled, settle
from racetrack.probes.memory import MemoryFile
from racetrack.probes.usage import Meter, cpu_times
from racetrack.probes.views import READER, ReadsProbe, ViewsProbe
from racetrack.results.folder import RunFolder
from racetrack.results.run import Counts, FaultLog, LoadLog, Measured, Window
from racetrack.results.verification import Verified
from racetrack.run import engine_run
from racetrack.run.checks import (
    SpaceWatch,
    caveats_of_clocks,
    check_writes,
    require_known_clock,
    services_of,
)
from racetrack.run.engine_run import EngineRun
from racetrack.run.faults import ExpectedOutages, Fault, FaultInjector, ServiceControl
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from racetrack.workloads.contract import find_workload
from racetrack.workloads.load_profile import LoadProfile

OneProbe = TypeVar("OneProbe", bound=Probe)
EVENTS = "events"  # the events of the main topic, whatever the workload
FIRST_UPDATE_WITHIN_S = FIRST_ANSWER_WITHIN_S = 60.0
DRAIN_WITHIN_S = 30.0
LOOK_EVERY_S = 1.0
ASK_EVERY_S = 1.0
# Interval between checks of whether the lag is normal again, long because each reads all rows
# recorded so far.
LAG_EVERY_S = 2.0

FIRST_RUN = (
    "This is a first run: {} started without class archives, which later runs have. CPU and memory"
    " may be higher than there."
)

DELETED_CHANGES = (
    "The broker deleted the first {:,} messages of {}: it is unknown whether the engine had read"
    " them. Keep more (KAFKA_RETENTION_BYTES, or the Kafka's own limits), or verify the views."
)


@dataclass(frozen=True)
class LoadSample:
    """Counters of a run at `at_s` (monotonic clock): events due, events counted by the engine, and
    CPU seconds of the engine's services, all since the run began."""

    at_s: float
    due: int
    counted: int
    cpu_s: float

    @property
    def waiting(self) -> int:
        """Number of events that are due but not counted."""
        return max(0, self.due - self.counted)


class Session:
    """One stack, one run folder, and one engine or a group, from the start of the stack to its
    end."""

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        screen: Screen,
        sample_every_s: float,
        faults: Sequence[Fault] = (),
        *,
        clock: Clock = SYSTEM_CLOCK,
        first_update_within_s: float = FIRST_UPDATE_WITHIN_S,
        drain_within_s: float | None = None,
    ) -> None:
        self.clock = clock
        self._first_update_within_s = first_update_within_s
        self._drain_within_s = DRAIN_WITHIN_S if drain_within_s is None else drain_within_s
        self._engine, self._stack, self._folder, self._screen = engine, stack, folder, screen
        self._workload = find_workload(stack.settings.workload)
        self._sample_every_s = sample_every_s
        self._closing = ExitStack()
        self._probes: list[Probe] = []
        self._arrivals: ArrivalsProbe | None = None
        self._settled: Settled | None = None  # final counts, set when the load is paused
        self._memory: MemoryFile | None = None
        self._curves_files: dict[Path, CurvesFile] = {}
        self._curves = self._curves_of(folder)
        self._outages = ExpectedOutages()
        self._runs = tuple(map(self._engine_run, engine.members))
        self._meter = Meter(self._processes, nodes.usage_now(lambda: self._stack.agents))
        self.control = ServiceControl(
            self._runs, stack=stack, outages=self._outages, meter=self._meter
        )
        self._faults = FaultInjector(
            faults, engine=engine, settings=stack.settings, control=self.control, say=screen.say
        )
        self._space = SpaceWatch(stack, folder.path)
        self._recorded: FaultLog | None = None
        self._load: LoadDriver | None = None
        self._recorded_load: LoadLog | None = None

    def _curves_of(self, folder: RunFolder) -> CurvesFile:
        """Return the open `curves.csv` of a folder: that of the run, or of one engine of a
        group."""
        if folder.path not in self._curves_files:
            self._curves_files[folder.path] = curves = CurvesFile(folder)
            self._closing.callback(curves.close)
        return self._curves_files[folder.path]

    def _engine_run(self, engine: Engine) -> EngineRun:
        folder, services = self._folder.of(engine.name), engine.services_in(self._stack.settings)
        curves, logs = self._curves_of(folder), self._folder.stack
        had_outage = self._outage_of(*services)
        return EngineRun(engine, self._stack, folder, curves, had_outage, logs)

    def start_stack(self) -> None:
        """Start the services that the engine needs, and the load at its initial rates. Loading of
        an engine's demo, the script that creates its views, begins as soon as all services are
        ready, except those for which the script itself waits.

        Raises:
            RacetrackError: a service did not start, or the broker loses writes.
        """
        self._space.check()
        services = services_of(self._engine, self._stack.settings)
        self._screen.say(f"  {', '.join(services)}, side by side")
        hear = [run.on_ready() for run in self._runs]

        def on_ready(service: str) -> None:
            for tell in hear:
                tell(service)

        self._stack.start(services, self._folder.stack, self._screen.say, on_ready)
        with self._folder.recording() as record:
            record.versions |= self._stack.versions()
            # `describe_run` did not know the processes of the services.
            quotas = host.cpu_quotas(self._processes())
            record.machine = record.machine.model_copy(update={"cpu_quotas": quotas})
        if quotas:
            self._screen.remark(
                f"CPU quota: {describe_quotas(quotas)}. If it stops the run, the run is void."
            )
        for run in self._runs:
            require_known_clock(run.engine, self._stack)
            if self._stack.agents:  # otherwise `describe_run` has recorded these caveats
                with self._folder.recording_of(run.engine.name) as record:
                    clocks = caveats_of_clocks(run.engine, self._stack)
                    record.caveats = (*record.caveats, *clocks)
        if unprepared := self._stack.unprepared:
            for run in self._runs:
                with self._folder.recording_of(run.engine.name) as record:
                    caveat = FIRST_RUN.format(", ".join(unprepared))
                    record.caveats = (*record.caveats, caveat)
        if "debezium" in self._engine.needs_in(self._stack.settings):
            had_outage = self._outage_of("debezium")
            connect = self._stack.endpoints.connect
            connector = self._stack.settings.workload
            self.begin(ConnectorProbe(connect, connector, had_outage))
        check_writes(self._stack, self.check)

    def run_demo(self) -> None:
        """Load the engines' demos, the scripts that create their views, and start all probes.

        Raises:
            RacetrackError: the engine refused the demo, or reported no progress in time.
        """
        where = self._stack.endpoints
        broker = self._main_topic()
        # Started before the demo is loaded, so that the curves include the first event that the
        # engine counts.
        self._arrivals = ArrivalsProbe(
            where.loadgen_host, where.loadgen_port, self._folder, self._curves
        )
        self.begin(self._arrivals)
        self.begin(EndOffsetsProbe(broker, self._curves, self._outage_of("broker")))
        self.begin(TopicsProbe(where.kafka, self._workload.topic.name, self._cdc_topics()))
        for run in self._runs:
            run.begin_to_load()
        for run in self._runs:
            self._finish_to_load(run)
        for run in self._runs:
            run.wait_for_first_update(self._first_update_within_s, self.check)
            of_engine = engine_run.engine_probes(
                run.engine,
                self._stack,
                run.folder,
                self._outage_of(*run.services),
                run.first_types,
            )
            for probe in of_engine:
                self.begin(probe, run.probes)
        changes = engine_run.changes_probe(
            self._engine,
            self._stack,
            self._folder,
            self._arrivals,
            self._outage_of("broker"),
            has_faults=not self._faults.all_done,
        )
        if changes:
            self.begin(changes)
        usage = engine_run.usage_probes(
            engine=self._engine,
            stack=self._stack,
            meter=self._meter,
            folder=self._folder,
            every_s=self._sample_every_s,
        )
        for probe in usage:
            self.begin(probe)
        self._wait_for_readers()
        self._wait_for_clients()

    def _finish_to_load(self, run: EngineRun) -> None:
        """Wait until an engine's demo is loaded, and begin to follow the engine's progress."""
        with run.explaining_failures():
            took_s = run.begin_to_load().result()
        which = f" of {run.engine.title}" * (len(self._runs) > 1)
        self._screen.say(f"  demo{which} loaded in {took_s:.1f} s")
        for remark in run.engine.remarks(self._stack):
            self._screen.remark(remark)
        with self._folder.recording() as record:
            record.versions |= run.engine.versions(self._stack)
        for probe in run.progress_probes:
            self.begin(probe, run.probes)

    def _wait_for_readers(self) -> None:
        """Wait until the view readers run their queries. Starting a client takes seconds and uses
        CPU, so it must be over before the measurement."""

        def have_begun() -> bool:
            return all(reader.has_begun for reader in self._readers())

        if not self.wait_until(have_begun, FIRST_ANSWER_WITHIN_S, "waiting for the view reader"):
            raise RacetrackError(
                f"The reader of the views of {self._engine.title} had no answer within"
                f" {FIRST_ANSWER_WITHIN_S:.0f} s. Logs: {self._folder.stack}."
            )

    def _wait_for_clients(self) -> None:
        """Wait until the engines' own clients receive all traced views, for the same reason. They
        may be without a row for long, if there are few tracer events."""
        probes = [
            probe
            for run in self._runs
            for probe in run.probes
            if run.engine.clients(self._stack.settings) and isinstance(probe, ViewsProbe)
        ]

        def have_begun() -> bool:
            return all(
                {view.name for view in probe.traced} <= {view for view, _ in [*probe.newest]}
                for probe in probes
            )

        if not self.wait_until(have_begun, FIRST_ANSWER_WITHIN_S, "waiting for the traced views"):
            self._screen.remark(
                "A client has not received each traced view yet, so view lag may read too high."
            )

    def _readers(self) -> list[ReadsProbe]:
        return [reader for run in self._runs for reader in run.readers]

    def set_rate(self, per_s: int) -> int:
        """Set the generator's rate, printing the command and the answer, and check that the load
        arrives in the broker. Return the time at which the rate was set, epoch milliseconds.

        Raises:
            RacetrackError: the broker loses writes.
        """
        self._request_rate(per_s, EVENTS)
        set_ms = now_ms()
        self._space.load_changes()
        check_writes(self._stack, self.check)
        return set_ms

    def offer(self, per_s: int, of: str = EVENTS) -> None:
        """Set the generator's rate without printing it and without a check; for rates that change
        every second."""
        self._request_rate(per_s, of, quietly=True)

    def set_reads(self, per_s: float) -> None:
        """Set the rate at which the views of each engine are read. The first call with a rate
        starts the readers, which takes seconds."""
        for run in self._runs:
            if not run.readers and per_s:
                self.begin(ReadsProbe(run.engine, self._stack, run.folder, per_s), run.probes)
            for reader in run.readers:
                reader.per_s = per_s

    @property
    def reads_per_s(self) -> float:
        """The rate at which the views of each engine are read; 0 if they are not."""
        return max((reader.per_s for reader in self._readers()), default=0.0)

    def load_sample(self) -> LoadSample:
        """Return the latest counters of due and counted events, and the engine's CPU time. In a
        group, the slowest engine's count."""
        used = self._meter.read()
        mine = self._engine.services_in(self._stack.settings)
        return LoadSample(
            at_s=time.monotonic(),
            due=self._arrivals.due if self._arrivals else 0,
            counted=min(run.counted for run in self._runs),
            cpu_s=sum(used[name].cpu_s for name in mine if name in used),
        )

    def begin_faults(self) -> None:
        """Start injecting the faults of this run. Their times count from now. Those that begin
        after a number of events also wait for the end of `sample`."""
        if not self._faults.all_done:
            self.begin(self._faults)

    def begin_load(self, profile: LoadProfile, file: str = LOAD_CSV) -> None:
        """Let a load profile drive the rate from now on, until `end_load` or the load is paused.
        Each rate and its time are written to `file`; each profile of a session needs a file of its
        own."""
        self.end_load()
        self._load = LoadDriver(profile, self.offer, self._folder, file)
        self.begin(self._load)

    def end_load(self) -> None:
        """Stop driving the rate by the load profile, if there is one."""
        if self._load:
            self._load.stop()

    @property
    def runs(self) -> tuple[EngineRun, ...]:
        """The engines of this session, each with its folder and probes."""
        return self._runs

    @property
    def services(self) -> list[str]:
        """Names of the services that have processes of their own, the engines' services first."""
        return engine_run.service_names(self._engine, self._stack)

    @property
    def arrivals(self) -> ArrivalsProbe | None:
        """The generator's counts; None before the demo is loaded."""
        return self._arrivals

    def probe(self, kind: type[OneProbe]) -> OneProbe | None:
        """Return the probe of this class that all engines share; None before it has begun."""
        return next((probe for probe in self._probes if isinstance(probe, kind)), None)

    def hear_curves(self, listener: Callable[[str, int, str, list[tuple[int, int]]], None]) -> None:
        """Call `listener` with the engine's name, the time, the curve and its counts whenever rows
        of `curves.csv` are written. The name is empty for rows that all engines of a group
        share."""
        names = {self._folder.path: ""}
        names |= {run.folder.path: run.engine.name for run in self._runs}
        for path, file in self._curves_files.items():
            file.listeners.append(partial(listener, names[path]))

    def watch_recovery(self) -> None:
        """Wait until all faults and the load profile are over and the lag is back to normal, for at
        most NORMAL_WITHIN_S after the last of them."""
        give_up: float | None = None
        with self._screen.live("waiting for lag to be normal again") as status:
            while self._is_disturbed and (give_up is None or time.monotonic() < give_up):
                self._let_pass(LAG_EVERY_S)
                status.update(f"waiting for lag to be normal again; {self._progress()}")
                if not self._faults.all_done or (self._load and not self._load.is_over):
                    continue
                if give_up is None:
                    give_up = time.monotonic() + NORMAL_WITHIN_S
                if self._is_normal_again():
                    return

    @property
    def _is_disturbed(self) -> bool:
        return bool(self._recorded or self._load)

    def _is_normal_again(self) -> bool:
        """Return whether the lag of every engine has recovered from all faults, and from the peak
        of the load."""
        return all(self._has_recovered(run.folder.path) for run in self._runs)

    def _has_recovered(self, path: Path) -> bool:
        load = self._load.record() if self._load else None
        peaked = load if load and load.peak_until_ms is not None else None
        if not self._recorded and not peaked:
            return True
        if curves.deleted_unread(curves.read(path)):
            return True  # the lag is unknown from now on
        if self._recorded and not recovery.is_over(
            recovery.recoveries(path, self._faults.record())
        ):
            return False
        return not peaked or recovery.load_effect(path, peaked).after_peak_s is not None

    def _let_pass(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self.check()
            time.sleep(min(LOOK_EVERY_S, left_s))

    def watch(self, seconds: float, what: str) -> None:
        """Wait some seconds, showing a status line and checking services, probes and disks."""
        self.wait_until(lambda: False, seconds, what, self._progress)

    def wait_until(
        self,
        reached: Callable[[], bool],
        within_s: float,
        what: str,
        progress: Callable[[], str] = str,
    ) -> bool:
        """Check a condition every second, showing a status line. Return False if the condition was
        not met in time. `progress` is called before each check and returns text for the status
        line."""
        give_up_s = time.monotonic() + within_s
        with self._screen.live(what) as status:
            while (left_s := give_up_s - time.monotonic()) > 0:
                text = progress()
                if reached():
                    return True
                status.update(", ".join(filter(None, (what, text, f"{left_s:.0f} s left"))))
                self._let_pass(min(ASK_EVERY_S, left_s))
        return False

    def sample(self, samples: int, rate_set_ms: int) -> Measured:
        """Take samples with `top`, and measure the CPU time in the same window."""
        processes = self._processes()
        with self._screen.live("sampling") as status:

            def check_and_report() -> None:
                self.check()
                status.update(f"sampling; {self._progress()}")

            start_ms, before = now_ms(), cpu_times(self._meter)
            changing = self._meter.pids if self._recorded else None
            if processes:
                top.take(
                    processes,
                    samples,
                    self._sample_every_s,
                    self._folder,
                    self._stack.settings.stack_name,
                    check_and_report,
                    changing,
                )
            else:  # all services run on other machines
                self._let_pass(samples * self._sample_every_s)
            end_ms, after = now_ms(), cpu_times(self._meter)
        self._faults.window_over.set()
        return Measured(
            window=Window(start_ms=start_ms, end_ms=end_ms),
            rate_set_ms=rate_set_ms,
            cpu_s={name: after[name].since(used) for name, used in before.items()},
        )

    def sample_memory(self) -> None:
        """Write the PSS of each service. Don't call this while CPU is measured, as it takes CPU."""
        if self._memory is None:
            file = MemoryFile(self._folder, self._stack.folders_in_memory, self._stack.agents)
            self._memory = self._closing.enter_context(file)
        self._memory.sample(self._processes())

    def pause(self) -> None:
        """Set all rates to 0."""
        self.end_load()
        with self._talk_to_loadgen() as control:
            control.pause()

    def account(self) -> dict[str, Counts]:
        """Pause the load, wait for the engines to drain, and return the counts of generator, broker
        and engine, by engine."""
        broker = self._main_topic()
        self.end_load()
        with self._talk_to_loadgen() as control:
            paused_ms = now_ms()
            control.pause()
            self._settled = settled = settle(control, broker)
        published = sum(settled.end_offsets)
        with self._screen.live("letting the engine drain"):
            drained = {
                run.engine.name: run.delay.wait_until(
                    lambda newest: newest.total >= published, self._drain_within_s, self.check
                )
                for run in self._runs
            }
        self._note_deleted_changes()
        return {
            run.engine.name: Counts(
                paused_ms=paused_ms,
                handed_over=tuple(settled.handed_over),
                refused=tuple(settled.refused),
                end_offsets=tuple(settled.end_offsets),
                engine_total=run.delay.newest.total if run.delay.newest else None,
                engine_drained=drained[run.engine.name],
            )
            for run in self._runs
        }

    def _note_deleted_changes(self) -> None:
        """Record a caveat if the broker has deleted change events. Engines don't count them, so
        whether they had been read is unknown."""
        probe = self.probe(TopicsProbe)
        for topic, count in (probe.deleted if probe else {}).items():
            for run in self._runs:
                with self._folder.recording_of(run.engine.name) as record:
                    record.caveats = (*record.caveats, DELETED_CHANGES.format(count, topic))

    def verify(self) -> dict[str, Verified]:
        """Compare every view of each engine with the sources. Call `account` before, which pauses
        the load."""
        # Imported here, because this imports DuckDB and Arrow, which most runs do not need.
        from racetrack.verify.verification import Verification, verify_together

        if not (settled := self._settled):
            raise ValueError("the load has not been paused")
        with self._screen.live("verifying") as status:

            def say(what: str) -> None:
                if threading.current_thread() is threading.main_thread():
                    self.check()
                status.update(what)

            verifications = {
                run.engine.name: Verification(
                    run.engine, self._stack, settled, run.folder.path / "verify", say
                )
                for run in self._runs
            }
            return verify_together(verifications, self.check)

    def check(self, but: Collection[str] = ()) -> None:
        """Check that all services and probes run, and that no disk is nearly full. Engines named in
        `but`, which have failed already, are left out.

        Raises:
            EngineFailed: an engine has failed.
            RacetrackError: another check failed; the message contains the reason.
        """
        self._space.check()
        for run in self._runs:
            if run.engine.name not in but:
                self.check_engine(run)
        for probe in self._probes:
            probe.check()
        # Faults and the load are recorded here, because only the main thread may write `run.json`.
        self._record_load()
        if self._faults.began_ms and (done := self._faults.record()) != self._recorded:
            self._recorded = done
            with self._folder.recording() as record:
                record.faults = done

    def check_engine(self, run: EngineRun) -> None:
        """Check that an engine and the services that it needs run.

        Raises:
            EngineFailed: the engine has failed.
            RacetrackError: another service has ended, or a Kafka message made the engine fail.
        """
        run.check([name for other in self._runs if other != run for name in other.services])

    def _record_load(self) -> None:
        load = self._load.record() if self._load else None
        if load != self._recorded_load:
            self._recorded_load = load
            with self._folder.recording() as run:
                run.load = load and LoadLog(**dict(load))

    def stop(self) -> None:
        """Stop the probes, then the stack."""
        with ExitStack() as at_last:
            # Stop the stack again, because a fault may have restarted a service in the meantime.
            at_last.callback(self._stack.stop, self._screen.say)
            at_last.callback(self._faults.join)
            for run in self._runs:
                at_last.callback(run.join)
            at_last.callback(self._stack.stop, self._screen.say)
            self._closing.close()

    def write_live_heaps(self) -> None:
        """Query the live heap of each JVM. Do this after all measurements, including the time in
        which the engines drain, because the collection pauses each JVM."""
        self._write_live_heaps(self._processes(), is_last=True)

    def engine_heap(self, *, is_last: bool) -> float | None:
        """Return the live objects on the engine's heaps in GiB, after a full collection, which
        pauses the engine; None if they are unknown. No other may follow the last."""
        processes, own = self._processes(), self._engine.services
        mine = {name: processes[name] for name in own if name in processes}
        self._write_live_heaps(mine, is_last=is_last)
        file = heap.LIVE_HEAP_CSV if is_last else heap.EARLY_HEAP_CSV
        heaps = list(raw.live_heaps(self._folder.path, file).values())
        return (
            sum(size_gib for size_gib in heaps if size_gib) if heaps and None not in heaps else None
        )

    def _write_live_heaps(self, processes: Mapping[str, Sequence[int]], *, is_last: bool) -> None:
        with self._screen.live("reading the live heap of each JVM"):
            unknown = heap.write_live_heaps(processes, self._folder, self.check, is_last=is_last)
        for line in unknown:
            self._screen.remark(line)

    def _processes(self) -> dict[str, list[int]]:
        """Return the processes of all services, of the engines' clients, and of the view reader."""
        services = engine_run.processes(self._engine, self._stack)
        for run in self._runs:
            services |= run.engine.clients(self._stack.settings)
        if self._readers():
            services[READER] = [pid for reader in self._readers() for pid in reader.pids]
        return services

    def _outage_of(self, *services: str) -> HadOutage:
        return lambda since_s: self._outages.any_since(since_s, services)

    def begin(self, probe: Probe, among: list[Probe] | None = None) -> None:
        """Start a probe, which is checked and stopped with the session. `among` is the list of its
        engine's probes, if it belongs to an engine."""
        self._closing.callback(probe.stop)
        (self._probes if among is None else among).append(probe)
        probe.start()

    def _cdc_topics(self) -> list[str]:
        if "debezium" not in self._engine.needs_in(self._stack.settings):
            return []
        return [self._workload.cdc_topic(table) for table in self._workload.tables]

    def _main_topic(self) -> TopicOffsets:
        return TopicOffsets(self._stack.endpoints.kafka, self._workload.topic.name)

    def _request_rate(self, per_s: int, kind: str, *, quietly: bool = False) -> None:
        with self._talk_to_loadgen() as control:
            control.ask(f"set {kind}_per_second {per_s}", quietly=quietly)

    def _talk_to_loadgen(self) -> Control:
        where = self._stack.endpoints
        return Control(
            where.loadgen_host, where.loadgen_port, lambda line: self._screen.say(f"  {line}")
        )

    def _progress(self) -> str:
        shown = []
        for run in self._runs:
            if newest := run.delay.newest:
                name = f"{run.engine.name} " * (len(self._runs) > 1)
                shown.append(f"{name}engine total {newest.total:,}, dt {newest.dt_ms:,.0f} ms")
        return ", ".join(shown)
