"""An engine on the track: its stack up, its demo running, its load under control, all watched.

The experiment and the search for the limit both drive this; it decides nothing.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from racetrack.analysis import recovery
from racetrack.clock import now_ms
from racetrack.engines.contract import DemoError, Engine
from racetrack.errors import EngineFailed, RacetrackError
from racetrack.probes import live_heap, refused_input, top
from racetrack.probes.broker import PublishedProbe, TopicOffsets
from racetrack.probes.connector import ConnectorProbe
from racetrack.probes.curves import CurvesFile
from racetrack.probes.delay import DelayProbe
from racetrack.probes.loadgen import ArrivalsProbe, Control
from racetrack.probes.memory import MemoryFile
from racetrack.probes.reads import NAME as READER
from racetrack.probes.reads import ReadsProbe
from racetrack.probes.settled import Settled, settle
from racetrack.probes.thread import Probe
from racetrack.probes.usage import Meter, cpu_times
from racetrack.probes.views import ViewsProbe
from racetrack.results.folder import RunFolder
from racetrack.results.run import Counts, FaultLog, Measured, Window
from racetrack.results.search import PAGEVIEWS
from racetrack.results.verification import Verified
from racetrack.run import followed, sampled
from racetrack.run.faults import Away, Fault, FaultInjector
from racetrack.run.rate_controller import LoadSample
from racetrack.run.readiness import check_services, check_writes, services_of
from racetrack.run.room import RoomWatch
from racetrack.stack.contract import OnReady, Stack, ignore
from racetrack.terminal import Screen
from racetrack.workloads.contract import find_workload

FIRST_UPDATE_WITHIN_S = FIRST_ANSWER_WITHIN_S = 60.0
DRAIN_WITHIN_S = 30.0
LOOK_EVERY_S = 0.5
ASK_EVERY_S = 1.0
# After a fault lag is waited for so long; it is looked at in all its rows, so not at every look.
NORMAL_WITHIN_S = 120.0
LAG_EVERY_S = 2.0


@dataclass(frozen=True)
class LatestCounters:
    """Latest counters: the generator's, as its `stats` command prints them; of each (view,
    partition); and the CPU seconds of each service."""

    counts: Mapping[str, Any]
    seen: Mapping[tuple[str, int], int]
    cpu_s: Mapping[str, float]


class WhenAllReady:
    """Begins something once, when the last of some services is ready; see `Stack.start`."""

    def __init__(self, services: set[str], begin: Callable[[], object]) -> None:
        self._missing, self._begin = services, begin
        self._lock = threading.Lock()

    def __call__(self, service: str) -> None:
        """Note that this service is ready; may be called from any thread."""
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
    ) -> None:
        self._engine, self._stack, self._folder, self._screen = engine, stack, folder, screen
        self._workload = find_workload(stack.settings.workload)
        self._sample_every_s = sample_every_s
        self._closing = ExitStack()
        self._probes: list[Probe] = []
        self._arrivals: ArrivalsProbe | None = None
        self._loading = False
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-demo")
        self._loaded: Future[float] | None = None
        self._settled: Settled | None = None  # once the load has been paused
        curves = CurvesFile(folder)
        self._closing.callback(curves.close)
        self._curves = curves
        self._away = Away()
        self._delay = DelayProbe(
            engine, stack, folder, curves, self._excused_by(*engine.services_in(stack.settings))
        )
        self._meter = Meter(self._processes)
        self._faults = FaultInjector(
            faults,
            engine=engine,
            stack=stack,
            away=self._away,
            meter=self._meter,
            delay=self._delay,
            say=screen.say,
        )
        self._room = RoomWatch(stack, folder.path)
        self._recorded: FaultLog | None = None

    def start_stack(self) -> None:
        """Start what this engine needs, and the load at its start rates. If the demo's script waits
        for some services itself, it begins to load when all others are ready.

        Raises:
            RacetrackError: a service did not come up, or the broker does not keep what it is sent.
        """
        self._room.check()
        services = services_of(self._engine, self._stack.settings)
        self._screen.say(f"  {', '.join(services)}, side by side")
        on_ready: OnReady = ignore
        if waits_for := set(self._engine.demo_waits_for):
            on_ready = WhenAllReady(set(services) - waits_for, self._begin_to_load)
        self._stack.start(services, self._folder.stack, self._screen.say, on_ready)
        with self._folder.recording() as run:
            run.versions |= self._stack.versions()
        if "debezium" in self._engine.needs:
            away = self._excused_by("debezium")
            self._begin(ConnectorProbe(self._stack.endpoints.connect, self._workload.name, away))
        check_writes(self._stack, self.check)

    def run_demo(self) -> None:
        """Load the demo; from now on everything is recorded.

        Raises:
            RacetrackError: the engine refused the demo, or tells no progress.
        """
        where = self._stack.endpoints
        broker = self._main_topic()
        # Before the demo: the curves must know when the first pageview that it counts was due.
        self._arrivals = ArrivalsProbe(
            where.loadgen_host, where.loadgen_port, self._folder, self._curves
        )
        self._begin(self._arrivals)
        self._begin(PublishedProbe(broker, self._curves, self._excused_by("broker")))
        loaded = self._loaded or self._begin_to_load()
        with self._explaining_failures():
            took_s = loaded.result()
        self._screen.say(f"  demo loaded in {took_s:.1f} s")
        for remark in self._engine.remarks(self._stack):
            self._screen.remark(remark)
        with self._folder.recording() as run:
            run.versions |= self._engine.versions(self._stack)
        self._begin(self._delay)
        if not self._delay.wait_until(lambda _: True, FIRST_UPDATE_WITHIN_S, self.check):
            with self._explaining_failures():
                raise EngineFailed(
                    f"{self._engine.title} reported no progress within"
                    f" {FIRST_UPDATE_WITHIN_S:.0f} s of loading the demo."
                    f" Its logs are in {self._folder.stack}."
                )
        has_faults = not self._faults.all_done
        beside = (self._engine, self._stack, self._folder, self._arrivals, self._excused_by)
        for probe in followed.probes(*beside, has_faults=has_faults):
            self._begin(probe)
        what = (self._engine, self._stack, self._meter, self._folder)
        for probe in sampled.probes(*what, self._sample_every_s):
            self._begin(probe)
        self._wait_for_readers()

    def _begin_to_load(self) -> Future[float]:
        self._loading = True
        self._loaded = self._loader.submit(self._load_demo)
        return self._loaded

    def _load_demo(self) -> float:
        """Load the demo and return how many seconds it took."""
        began = time.monotonic()
        self._engine.load_demo(self._stack)
        return time.monotonic() - began

    def _wait_for_readers(self) -> None:
        """A client takes seconds to begin, and may need a core for it."""

        def have_begun() -> bool:
            return all(one.has_begun for one in self._readers())

        if not self.wait_until(
            have_begun, FIRST_ANSWER_WITHIN_S, "waiting for who reads the views"
        ):
            raise RacetrackError(
                f"Who reads the views of {self._engine.title} had no answer within"
                f" {FIRST_ANSWER_WITHIN_S:.0f} s. Logs: {self._folder.stack}."
            )

    def _readers(self) -> list[ReadsProbe]:
        return [one for one in self._probes if isinstance(one, ReadsProbe)]

    def set_rate(self, per_s: int, of: str = PAGEVIEWS) -> int:
        """Ask the generator for another rate, show the dialogue, and see that the load arrives.
        Returns when it was set, epoch milliseconds.

        Raises:
            RacetrackError: the broker does not keep what it is sent.
        """
        self._ask_for(per_s, of)
        set_ms = now_ms()
        self._room.load_changes()
        check_writes(self._stack, self.check)
        return set_ms

    def offer(self, per_s: int, of: str = PAGEVIEWS) -> None:
        """Ask the generator for another rate, without a word and without looking whether the load
        arrives: for a rate that is changed every second."""
        self._ask_for(per_s, of, quietly=True)

    def load_sample(self) -> LoadSample:
        """Return the latest counters of events due and counted, and the CPU time of the engine."""
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
        seen = [one.newest for one in self._probes if isinstance(one, ViewsProbe)]
        return LatestCounters(
            counts=self._arrivals.counts if self._arrivals else {},
            seen={row: value for newest in seen for row, value in newest.copy().items()},
            cpu_s={service: used.cpu_s for service, used in self._meter.read().items()},
        )

    def begin_faults(self) -> None:
        """From now on the seconds of the faults that were asked for count."""
        if not self._faults.all_done:
            self._begin(self._faults)

    def watch_recovery(self) -> None:
        """Wait until every fault has been done and lag is back to normal, for NORMAL_WITHIN_S at
        most after the last: that it never came back is a result too."""
        give_up: float | None = None
        with self._screen.live("waiting for lag to be normal again") as status:
            while self._recorded and (give_up is None or time.monotonic() < give_up):
                self._let_pass(LAG_EVERY_S)
                status.update(f"waiting for lag to be normal again; {self._progress()}")
                if not self._faults.all_done:
                    continue
                if give_up is None:
                    give_up = time.monotonic() + NORMAL_WITHIN_S
                if recovery.is_over(recovery.recoveries(self._folder.path, self._faults.record())):
                    return

    def _let_pass(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            self.check()
            time.sleep(min(LOOK_EVERY_S, left_s))

    def watch(self, seconds: float, what: str) -> None:
        """Let time pass, with a live line, while everything is checked."""
        self.wait_until(lambda: False, seconds, what, self._progress)

    def wait_until(
        self,
        reached: Callable[[], bool],
        within_s: float,
        what: str,
        meanwhile: Callable[[], str] = str,
    ) -> bool:
        """Check a condition every second, with a status line; return False if it was not reached in
        time. `meanwhile` is called before each check and returns text for the line."""
        give_up_s = time.monotonic() + within_s
        with self._screen.live(what) as status:
            while (left_s := give_up_s - time.monotonic()) > 0:
                said = meanwhile()
                if reached():
                    return True
                status.update(", ".join(filter(None, (what, said, f"{left_s:.0f} s left"))))
                self._let_pass(min(ASK_EVERY_S, left_s))
        return False

    def sample(self, samples: int, rate_set_ms: int) -> Measured:
        """Take samples with `top`, and account for CPU time over the same window. Each service's
        PSS is read before and after it, because reading it takes CPU."""
        with MemoryFile(self._folder, self._stack.folders_in_memory) as memory:
            memory.look(self._processes())
            measured = self._sample(samples, rate_set_ms)
            memory.look(self._processes())
        return measured

    def _sample(self, samples: int, rate_set_ms: int) -> Measured:
        processes = self._processes()
        with self._screen.live("sampling") as status:

            def meanwhile() -> None:
                self.check()
                status.update(f"sampling; {self._progress()}")

            start_ms, before = now_ms(), cpu_times(self._meter)
            changing = self._meter.pids if self._recorded else None
            top.take(
                *(processes, samples, self._sample_every_s, self._folder),
                *(self._stack.settings.stack_name, meanwhile, changing),
            )
            end_ms, after = now_ms(), cpu_times(self._meter)
        return Measured(
            window=Window(start_ms=start_ms, end_ms=end_ms),
            rate_set_ms=rate_set_ms,
            cpu_s={name: after[name].since(used) for name, used in before.items()},
        )

    def account(self) -> Counts:
        """Pause the load, let the engine drain, ask each JVM for its live heap, and tell who
        counted what."""
        broker = self._main_topic()
        with self._talk_to_loadgen() as control:
            paused_ms = now_ms()
            control.pause()
            self._settled = settled = settle(control, broker)
        published = sum(settled.end_offsets)
        with self._screen.live("letting the engine drain"):
            drained = self._delay.wait_until(
                lambda newest: newest.total >= published, DRAIN_WITHIN_S, self.check
            )
        self._ask_live_heaps()
        return Counts(
            paused_ms=paused_ms,
            handed_over=tuple(settled.handed_over),
            refused=tuple(settled.refused),
            end_offsets=tuple(settled.end_offsets),
            engine_total=self._delay.newest.total if self._delay.newest else None,
            engine_drained=drained,
        )

    def verify(self) -> Verified:
        """Compare every view with the sources, once the load has been paused by `account`."""
        # It brings DuckDB and Arrow, and most runs do without.
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
        """Raise if a part of the stack or a probe is no longer there, or a disk is nearly full."""
        self._room.check()
        with self._explaining_failures():
            check_services(self._stack, self._engine)
            for probe in self._probes:
                probe.check()
        # Here, in the main thread, which alone writes `run.json`.
        if self._faults.began_ms and (done := self._faults.record()) != self._recorded:
            self._recorded = done
            with self._folder.recording() as run:
                run.faults = done

    @contextmanager
    def _explaining_failures(self) -> Iterator[None]:
        """Where the engine fails because of a message, let the error name that message."""
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
        """End the probes, then the stack, and leave nothing behind."""
        with ExitStack() as at_last:
            # Again, because a fault may have been about to start a service once more.
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

    def _ask_live_heaps(self) -> None:
        """Each stands still while it collects: so only now, when nothing is measured any more."""
        with self._screen.live("asking each JVM for its live heap"):
            silent = live_heap.write(self._processes(), self._folder, self.check)
        for line in silent:
            self._screen.remark(line)

    def _processes(self) -> dict[str, list[int]]:
        """Of all services, and of who reads the views."""
        services = sampled.processes(self._engine, self._stack)
        if self._stack.settings.reads_per_second:
            services[READER] = [pid for one in self._readers() for pid in one.pids]
        return services

    def _excused_by(self, *services: str) -> Callable[[float], bool]:
        """Whether one of these services is or was away on purpose since a time."""
        return lambda since_s: self._away.at_any_time_since(since_s, services)

    def _begin(self, probe: Probe) -> None:
        self._closing.callback(probe.stop)
        self._probes.append(probe)
        probe.start()

    def _main_topic(self) -> TopicOffsets:
        return TopicOffsets(self._stack.endpoints.kafka, self._workload.topic.name)

    def _ask_for(self, per_s: int, of: str, *, quietly: bool = False) -> None:
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
