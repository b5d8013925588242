"""Session: the stack, the demo, the load and the probes of one run.

A session only carries out operations. Experiments and capacity searches decide which and when.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from racetrack.analysis import recovery
from racetrack.clock import SYSTEM_CLOCK, Clock, now_ms
from racetrack.engines.contract import DemoError, Engine
from racetrack.errors import EngineFailed, RacetrackError
from racetrack.probes import memory, refused_input, top
from racetrack.probes.base import CurvesFile, HadOutage, Probe
from racetrack.probes.broker import EndOffsetsProbe, TopicOffsets
from racetrack.probes.cdc import ConnectorProbe
from racetrack.probes.loadgen import ArrivalsProbe, Control, Settled, settle
from racetrack.probes.memory import MemoryFile
from racetrack.probes.usage import Meter, cpu_times
from racetrack.probes.views import READER, DelayProbe, ReadsProbe, ViewsProbe
from racetrack.results.folder import RunFolder
from racetrack.results.run import Counts, FaultLog, LoadLog, Measured, Window
from racetrack.results.search import PAGEVIEWS
from racetrack.results.verification import Verified
from racetrack.run import probe_set
from racetrack.run.checks import SpaceWatch, check_services, check_writes, services_of
from racetrack.run.faults import ExpectedOutages, Fault, FaultInjector
from racetrack.run.load_driver import LoadDriver
from racetrack.run.search import LoadSample
from racetrack.stack.contract import OnReady, Stack, ignore
from racetrack.terminal import Screen
from racetrack.workloads.contract import find_workload
from racetrack.workloads.load_profile import LoadProfile

FIRST_UPDATE_WITHIN_S = FIRST_ANSWER_WITHIN_S = 60.0
DRAIN_WITHIN_S = 30.0
LOOK_EVERY_S = 1.0
ASK_EVERY_S = 1.0
# Time limit for the lag to return to normal after the last fault, and the time between checks, each
# of which reads the whole recording.
NORMAL_WITHIN_S = 120.0
LAG_EVERY_S = 2.0

FIRST_RUN = (
    "This is a first run: {} started without class archives, which later runs have. CPU and memory"
    " may be higher than there."
)


@dataclass(frozen=True)
class LatestCounters:
    """Latest counters: the generator's counts, as its `stats` command prints them; the tracer value
    of each (view, partition); and the CPU seconds of each service."""

    counts: Mapping[str, Any]
    views: Mapping[tuple[str, int], int]
    cpu_s: Mapping[str, float]


class WhenAllReady:
    """Calls `begin` once all of these services are ready. Passed to `Stack.start`."""

    def __init__(self, services: set[str], begin: Callable[[], object]) -> None:
        self._missing, self._begin = services, begin
        self._lock = threading.Lock()

    def __call__(self, service: str) -> None:
        """Note that a service is ready. May be called from any thread."""
        with self._lock:
            if service not in self._missing:
                return
            self._missing.remove(service)
            if self._missing:
                return
        self._begin()


class Session:
    """One engine and one run folder, from the start of the stack to its end."""

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
        self._loading = False
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-demo")
        self._loaded: Future[float] | None = None
        self._settled: Settled | None = None  # set when the load is paused
        curves = CurvesFile(folder)
        self._closing.callback(curves.close)
        self._memory: MemoryFile | None = None
        self._curves = curves
        self._outages = ExpectedOutages()
        self._delay = DelayProbe(
            engine, stack, folder, curves, self._outage_of(*engine.services_in(stack.settings))
        )
        self._meter = Meter(self._processes)
        self._faults = FaultInjector(
            faults,
            engine=engine,
            stack=stack,
            outages=self._outages,
            meter=self._meter,
            delay=self._delay,
            say=screen.say,
        )
        self._space = SpaceWatch(stack, folder.path)
        self._recorded: FaultLog | None = None
        self._load: LoadDriver | None = None
        self._recorded_load: LoadLog | None = None

    def start_stack(self) -> None:
        """Start the services that the engine needs, and the load at its initial rates. Loading of
        the demo begins as soon as all services are ready, except those for which the demo's script
        itself waits.

        Raises:
            RacetrackError: a service did not start, or the broker loses writes.
        """
        self._space.check()
        services = services_of(self._engine, self._stack.settings)
        self._screen.say(f"  {', '.join(services)}, side by side")
        on_ready: OnReady = ignore
        if waits_for := set(self._engine.demo_waits_for(self._stack.settings)):
            on_ready = WhenAllReady(set(services) - waits_for, self._begin_to_load)
        self._stack.start(services, self._folder.stack, self._screen.say, on_ready)
        with self._folder.recording() as run:
            run.versions |= self._stack.versions()
            if unprepared := self._stack.unprepared:
                run.caveats = (*run.caveats, FIRST_RUN.format(", ".join(unprepared)))
        if "debezium" in self._engine.needs:
            had_outage = self._outage_of("debezium")
            connect = self._stack.endpoints.connect
            self._begin(ConnectorProbe(connect, self._workload.name, had_outage))
        check_writes(self._stack, self.check)

    def run_demo(self) -> None:
        """Load the demo and start all probes.

        Raises:
            RacetrackError: the engine refused the demo, or reported no progress in time.
        """
        where = self._stack.endpoints
        broker = self._main_topic()
        # Started before the demo, so that the curves include the first pageview that the demo
        # counts.
        self._arrivals = ArrivalsProbe(
            where.loadgen_host, where.loadgen_port, self._folder, self._curves
        )
        self._begin(self._arrivals)
        self._begin(EndOffsetsProbe(broker, self._curves, self._outage_of("broker")))
        loaded = self._loaded or self._begin_to_load()
        with self._explaining_failures():
            took_s = loaded.result()
        self._screen.say(f"  demo loaded in {took_s:.1f} s")
        for remark in self._engine.remarks(self._stack):
            self._screen.remark(remark)
        with self._folder.recording() as run:
            run.versions |= self._engine.versions(self._stack)
        self._begin(self._delay)
        if not self._delay.wait_until(lambda _: True, self._first_update_within_s, self.check):
            with self._explaining_failures():
                raise EngineFailed(
                    f"{self._engine.title} reported no progress within"
                    f" {self._first_update_within_s:.0f} s of loading the demo."
                    f" Its logs are in {self._folder.stack}."
                )
        optional = probe_set.optional_probes(
            engine=self._engine,
            stack=self._stack,
            folder=self._folder,
            arrivals=self._arrivals,
            outage_of=self._outage_of,
            has_faults=not self._faults.all_done,
        )
        for probe in optional:
            self._begin(probe)
        usage = probe_set.usage_probes(
            engine=self._engine,
            stack=self._stack,
            meter=self._meter,
            folder=self._folder,
            every_s=self._sample_every_s,
        )
        for probe in usage:
            self._begin(probe)
        self._wait_for_readers()

    def _begin_to_load(self) -> Future[float]:
        self._loading = True
        self._loaded = self._loader.submit(self._load_demo)
        return self._loaded

    def _load_demo(self) -> float:
        """Load the demo; return how many seconds that took."""
        began = time.monotonic()
        self._engine.load_demo(self._stack)
        return time.monotonic() - began

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

    def _readers(self) -> list[ReadsProbe]:
        return [probe for probe in self._probes if isinstance(probe, ReadsProbe)]

    def set_rate(self, per_s: int, of: str = PAGEVIEWS) -> int:
        """Set the generator's rate, printing the command and the answer, and check that the load
        arrives in the broker. Return the time at which the rate was set, epoch milliseconds.

        Raises:
            RacetrackError: the broker loses writes.
        """
        self._request_rate(per_s, of)
        set_ms = now_ms()
        self._space.load_changes()
        check_writes(self._stack, self.check)
        return set_ms

    def offer(self, per_s: int, of: str = PAGEVIEWS) -> None:
        """Set the generator's rate without printing it and without a check; for rates that change
        every second."""
        self._request_rate(per_s, of, quietly=True)

    def load_sample(self) -> LoadSample:
        """Return the latest counters of due and counted events, and the engine's CPU time."""
        used = self._meter.read()
        mine = self._engine.services_in(self._stack.settings)
        newest = self._delay.newest
        return LoadSample(
            at_s=time.monotonic(),
            due=self._arrivals.due if self._arrivals else 0,
            counted=newest.total if newest else 0,
            cpu_s=sum(used[name].cpu_s for name in mine if name in used),
        )

    def latest_counters(self) -> LatestCounters:
        """Return the latest counters of the generator, the views and the services."""
        views = [probe.newest for probe in self._probes if isinstance(probe, ViewsProbe)]
        return LatestCounters(
            counts=self._arrivals.counts if self._arrivals else {},
            views={row: value for newest in views for row, value in newest.copy().items()},
            cpu_s={service: used.cpu_s for service, used in self._meter.read().items()},
        )

    def begin_faults(self) -> None:
        """Start injecting the faults of this run. Their times count from now."""
        if not self._faults.all_done:
            self._begin(self._faults)

    def begin_load(self, profile: LoadProfile) -> None:
        """Let a load profile drive the rate from now on, until the load is paused."""
        self._load = LoadDriver(profile, self.offer, self._folder)
        self._begin(self._load)

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
        """Return whether lag has recovered from all faults, and from the peak of the load."""
        path = self._folder.path
        if self._recorded and not recovery.is_over(
            recovery.recoveries(path, self._faults.record())
        ):
            return False
        load = self._load.record() if self._load else None
        if not load or load.peak_until_ms is None:
            return True
        return recovery.load_effect(path, load).after_peak_s is not None

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
        meanwhile: Callable[[], str] = str,
    ) -> bool:
        """Check a condition every second, showing a status line. Return False if the condition was
        not met in time. `meanwhile` is called before each check and returns text for the status
        line."""
        give_up_s = time.monotonic() + within_s
        with self._screen.live(what) as status:
            while (left_s := give_up_s - time.monotonic()) > 0:
                progress = meanwhile()
                if reached():
                    return True
                status.update(", ".join(filter(None, (what, progress, f"{left_s:.0f} s left"))))
                self._let_pass(min(ASK_EVERY_S, left_s))
        return False

    def sample(self, samples: int, rate_set_ms: int) -> Measured:
        """Take samples with `top`, and measure the CPU time in the same window."""
        processes = self._processes()
        with self._screen.live("sampling") as status:

            def meanwhile() -> None:
                self.check()
                status.update(f"sampling; {self._progress()}")

            start_ms, before = now_ms(), cpu_times(self._meter)
            changing = self._meter.pids if self._recorded else None
            top.take(
                processes,
                samples,
                self._sample_every_s,
                self._folder,
                self._stack.settings.stack_name,
                meanwhile,
                changing,
            )
            end_ms, after = now_ms(), cpu_times(self._meter)
        return Measured(
            window=Window(start_ms=start_ms, end_ms=end_ms),
            rate_set_ms=rate_set_ms,
            cpu_s={name: after[name].since(used) for name, used in before.items()},
        )

    def sample_memory(self) -> None:
        """Write the PSS of each service. Reading it takes CPU, so not while CPU is measured."""
        if self._memory is None:
            file = MemoryFile(self._folder, self._stack.folders_in_memory)
            self._memory = self._closing.enter_context(file)
        self._memory.sample(self._processes())

    def account(self) -> Counts:
        """Pause the load, wait for the engine to drain, query the live heap of each JVM, and return
        the counts of generator, broker and engine."""
        broker = self._main_topic()
        if self._load:
            self._load.stop()
        with self._talk_to_loadgen() as control:
            paused_ms = now_ms()
            control.pause()
            self._settled = settled = settle(control, broker)
        published = sum(settled.end_offsets)
        with self._screen.live("letting the engine drain"):
            drained = self._delay.wait_until(
                lambda newest: newest.total >= published, self._drain_within_s, self.check
            )
        self._write_live_heaps()
        return Counts(
            paused_ms=paused_ms,
            handed_over=tuple(settled.handed_over),
            refused=tuple(settled.refused),
            end_offsets=tuple(settled.end_offsets),
            engine_total=self._delay.newest.total if self._delay.newest else None,
            engine_drained=drained,
        )

    def verify(self) -> Verified:
        """Compare every view with the sources. Call `account` before, which pauses the load."""
        # Imported here, because this imports DuckDB and Arrow, which most runs do not need.
        from racetrack.verify.verification import Verification

        if not (settled := self._settled):
            raise ValueError("the load has not been paused")
        with self._screen.live("verifying") as status:

            def meanwhile(what: str) -> None:
                self.check()
                status.update(what)

            folder = self._folder.path / "verify"
            return Verification(self._engine, self._stack, settled, folder, meanwhile).run()

    def check(self) -> None:
        """Check that all services and probes run, and that no disk is nearly full.

        Raises:
            RacetrackError: a check failed; the message contains the reason.
        """
        self._space.check()
        with self._explaining_failures():
            check_services(self._stack, self._engine)
            for probe in self._probes:
                probe.check()
        # Faults and the load are recorded here, because only the main thread may write `run.json`.
        self._record_load()
        if self._faults.began_ms and (done := self._faults.record()) != self._recorded:
            self._recorded = done
            with self._folder.recording() as run:
                run.faults = done

    def _record_load(self) -> None:
        load = self._load.record() if self._load else None
        if load != self._recorded_load:
            self._recorded_load = load
            with self._folder.recording() as run:
                run.load = load and LoadLog(**dict(load))

    @contextmanager
    def _explaining_failures(self) -> Iterator[None]:
        """If the engine fails inside the context because of a message, add that message to the
        error."""
        try:
            yield
        except (EngineFailed, DemoError) as failure:
            own = self._engine.services_in(self._stack.settings)
            refusal = refused_input.explain(
                str(failure),
                [self._stack.log_of(service) for service in own],
                self._workload,
                self._stack.endpoints.kafka,
                self._stack.endpoints.registry,
                self._delay.counted,
            )
            if not refusal:
                raise
            raise RacetrackError(refusal.line(self._engine.title)) from failure

    def stop(self) -> None:
        """Stop the probes, then the stack."""
        with ExitStack() as at_last:
            # Stop the stack again, because a fault may have restarted a service in the meantime.
            at_last.callback(self._stack.stop, self._screen.say)
            at_last.callback(self._faults.join)
            at_last.callback(self._loader.shutdown)
            at_last.callback(self._stack.stop, self._screen.say)
            at_last.callback(self._unload)
            self._closing.close()

    def _unload(self) -> None:
        if self._loading:
            self._loading = False
            self._engine.unload(self._stack)

    def _write_live_heaps(self) -> None:
        """Query the live heaps. Do this after all measurements, because the collection pauses each
        JVM."""
        with self._screen.live("reading the live heap of each JVM"):
            unknown = memory.write_live_heaps(self._processes(), self._folder, self.check)
        for line in unknown:
            self._screen.remark(line)

    def _processes(self) -> dict[str, list[int]]:
        """Return the processes of all services and of the view reader."""
        services = probe_set.processes(self._engine, self._stack)
        if self._stack.settings.reads_per_second:
            services[READER] = [pid for reader in self._readers() for pid in reader.pids]
        return services

    def _outage_of(self, *services: str) -> HadOutage:
        return lambda since_s: self._outages.any_since(since_s, services)

    def _begin(self, probe: Probe) -> None:
        self._closing.callback(probe.stop)
        self._probes.append(probe)
        probe.start()

    def _main_topic(self) -> TopicOffsets:
        return TopicOffsets(self._stack.endpoints.kafka, self._workload.topic.name)

    def _request_rate(self, per_s: int, of: str, *, quietly: bool = False) -> None:
        with self._talk_to_loadgen() as control:
            control.ask(f"set {of}_per_second {per_s}", quietly=quietly)

    def _talk_to_loadgen(self) -> Control:
        where = self._stack.endpoints
        return Control(
            where.loadgen_host, where.loadgen_port, lambda line: self._screen.say(f"  {line}")
        )

    def _progress(self) -> str:
        newest = self._delay.newest
        return f"engine total {newest.total:,}, dt {newest.dt_ms:,.0f} ms" if newest else ""
