"""Engines of a session: loading of their demo scripts, their processes, and the probes that they
and the settings require."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import KafkaException

from racetrack.engines.contract import DemoError, Engine, Summary
from racetrack.errors import EngineFailed, RacetrackError
from racetrack.probes import refused_input
from racetrack.probes.base import CurvesFile, HadOutage, Probe
from racetrack.probes.cdc import PurchasesProbe, SchemasProbe, Types, newest_types
from racetrack.probes.loadgen import ArrivalsProbe
from racetrack.probes.nodes import NodesProbe
from racetrack.probes.noise import HarnessMeter, NoiseProbe, ServicesMeter, ThrottledMeter
from racetrack.probes.positions import TracedProgress
from racetrack.probes.usage import CgroupProbe, Meter, UsageProbe
from racetrack.probes.views import DelayProbe, ReadsProbe, ViewsProbe
from racetrack.results.folder import RunFolder
from racetrack.run.checks import check_services, services_of
from racetrack.stack.contract import Accounting, OnReady, Stack, ignore
from racetrack.workloads.contract import find_workload


class WhenAllReady:
    """Calls `begin` once all these services have reported that they are ready. `Stack.start` calls
    it for each service that is ready."""

    def __init__(self, services: set[str], begin: Callable[[], object]) -> None:
        self._missing, self._begin = services, begin
        self._lock = threading.Lock()

    def __call__(self, service: str) -> None:
        """Record that a service is ready. May be called from any thread."""
        with self._lock:
            if service not in self._missing:
                return
            self._missing.remove(service)
            if self._missing:
                return
        self._begin()


class EngineRun:
    """One engine of a session, and its folder."""

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        folder: RunFolder,
        curves: CurvesFile,
        had_outage: HadOutage,
        logs: Path,
    ) -> None:
        self.engine, self.folder, self._stack, self._logs = engine, folder, stack, logs
        self.services = engine.services_in(stack.settings)
        # The probes that follow the engine's progress; `delay` is the last of them.
        self.progress_probes: list[Probe] = []
        updates = None
        if find_workload(stack.settings.workload).positions:
            traced = TracedProgress(engine, stack)
            views = ViewsProbe(engine, stack, folder, had_outage, traced.take)
            updates = traced.updates
            self.progress_probes.append(views)
        self.delay = DelayProbe(engine, stack, folder, curves, had_outage, updates)
        self.progress_probes.append(self.delay)
        self.probes: list[Probe] = []  # the probes that have been started
        self._is_explained = False  # whether the message of `delay.ahead` was searched
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-demo")
        self._loaded: Future[float] | None = None
        # Types of the tables' columns when the demo was loaded, see `SchemasProbe`.
        self.first_types: dict[str, Types] = {}

    def on_ready(self) -> OnReady:
        """Return a function for `Stack.start` that begins to load the demo as soon as all services
        are ready, except those for which the demo's script itself waits."""
        settings = self._stack.settings
        if not (waits_for := set(self.engine.demo_waits_for(settings))):
            return ignore
        needed = set(services_of(self.engine, settings)) - waits_for
        return WhenAllReady(needed, self.begin_to_load)

    def begin_to_load(self) -> Future[float]:
        """Begin to load the demo, unless loading has begun already. The result of the future is the
        loading time in seconds."""
        if not self._loaded:
            self._loaded = self._loader.submit(self._load_demo)
        return self._loaded

    def _load_demo(self) -> float:
        before = self._newest_types()
        began = time.monotonic()
        self.engine.load_demo(self._stack)
        took_s = time.monotonic() - began
        # The script may itself wait for the tables' schemas.
        self.first_types = {**self._newest_types(), **before}
        return took_s

    def _newest_types(self) -> dict[str, Types]:
        return newest_types(self._stack) if self.engine.keeps_first_schemas else {}

    @property
    def counted(self) -> int:
        """The number of events in the engine's latest count."""
        return self.delay.newest.total if self.delay.newest else 0

    def wait_for_first_update(self, within_s: float, while_waiting: Callable[[], None]) -> None:
        """Wait until the engine reports progress.

        Raises:
            RacetrackError: it reported none in time.
        """
        if not self.delay.wait_until(lambda _: True, within_s, while_waiting):
            with self.explaining_failures():
                raise EngineFailed(
                    f"{self.engine.title} reported no progress within {within_s:.0f} s of loading"
                    f" the demo. Its logs are in {self._logs}."
                )

    @property
    def readers(self) -> list[ReadsProbe]:
        """The view reader, if it has been started."""
        return [probe for probe in self.probes if isinstance(probe, ReadsProbe)]

    def forget_views(self) -> None:
        """Forget what the traced views contained, because the engine was killed."""
        for probe in self.probes:
            if isinstance(probe, ViewsProbe):
                probe.newest.clear()

    def check(self, besides: Collection[str]) -> None:
        """Check that the engine, its probes and the services it depends on are still running.
        `besides` contains the services of other engines.

        Raises:
            RacetrackError: a service has ended; the message contains the reason.
        """
        with self.explaining_failures():
            check_services(self._stack, self.engine, besides)
            for probe in self.probes:
                probe.check()
        if (ahead := self.delay.ahead) and not self._is_explained:
            self._is_explained = True
            self._require_none_of_the_future(ahead)

    def _require_none_of_the_future(self, ahead: Summary) -> None:
        """Fail if the input has the message whose time is ahead of the clock. If it has none, a
        clock was set, which the analysis finds."""
        topics = refused_input.KafkaInput(self._stack.endpoints.kafka)
        workload = find_workload(self._stack.settings.workload)
        with suppress(KafkaException):
            message = refused_input.future_message(
                ahead.max_received_at_ms, -ahead.dt_ms, workload, topics, self.delay.counted
            )
            if message:
                raise RacetrackError(message)

    @contextmanager
    def explaining_failures(self) -> Iterator[None]:
        """If the engine fails inside the context because of a Kafka message that it can't process,
        describe that message in the error."""
        try:
            yield
        except (EngineFailed, DemoError) as failure:
            refusal = refused_input.explain(
                str(failure),
                [self._stack.log_of(service) for service in self.services],
                find_workload(self._stack.settings.workload),
                self._stack.endpoints.kafka,
                self._stack.endpoints.registry,
                self.delay.counted,
            )
            if not refusal:
                raise
            raise RacetrackError(refusal.line(self.engine.title)) from failure

    def join(self) -> None:
        """Wait until the demo is no longer being loaded. Call this after the stack was stopped."""
        self._loader.shutdown()


def processes(engine: Engine, stack: Stack) -> dict[str, list[int]]:
    """Return the live processes of each service. The engine's services come first, then broker and
    load generator, then all others."""
    own = engine.processes(stack)
    return {**own, **stack.pids(_others(own, engine, stack))}


def service_names(engine: Engine, stack: Stack) -> list[str]:
    """Return the names of the services in `processes`, in the same order."""
    own = engine.services_in(stack.settings)
    return [*own, *_others(own, engine, stack)]


def _others(own: Collection[str], engine: Engine, stack: Stack) -> list[str]:
    started = stack.apart(services_of(engine, stack.settings))
    first = [name for name in ("broker", "loadgen") if name in started]
    return [name for name in dict.fromkeys([*first, *started]) if name not in own]


def accounts(engine: Engine, stack: Stack) -> dict[str, Accounting]:
    """Return the accounting of the kernel (control groups) for each service, if the runtime
    provides it."""
    by_name = {name: stack.accounting(name) for name in processes(engine, stack)}
    return {name: account for name, account in by_name.items() if account}


def usage_probes(
    engine: Engine, stack: Stack, meter: Meter, folder: RunFolder, every_s: float
) -> list[Probe]:
    """Return the probes of the services' resource usage and of the machine's noise. If the engine's
    processes are unknown, the CPU time of other programs is not measured."""
    probes: list[Probe] = []
    kept_apart = accounts(engine, stack)
    if stack.agents:
        probes.append(NodesProbe(stack.agents, meter, folder))
    else:
        probes.append(UsageProbe(meter, every_s, folder))
    if kept_apart:
        probes.append(CgroupProbe(kept_apart, every_s, folder))
    if not stack.unmeasurable:
        services = ServicesMeter(meter, kept_apart, stack.helpers)
        known = services if engine.processes(stack) or stack.agents else None
        throttled = ThrottledMeter(meter.pids)
        probes.append(NoiseProbe(known, HarnessMeter(meter.pids), throttled, folder))
    return probes


def engine_probes(
    engine: Engine,
    stack: Stack,
    folder: RunFolder,
    had_outage: HadOutage,
    first_types: Mapping[str, Types],
) -> Iterator[Probe]:
    """Yield the probes of one engine that the settings enable, without those of its progress.
    `first_types` are the types of the tables' columns when its demo was loaded."""
    settings = stack.settings
    if settings.tracer_events_per_second and not find_workload(settings.workload).positions:
        yield ViewsProbe(engine, stack, folder, had_outage)
    if settings.reads_per_second:
        yield ReadsProbe(engine, stack, folder, settings.reads_per_second)
    if engine.keeps_first_schemas:
        yield SchemasProbe(engine, stack, first_types)


def changes_probe(
    engine: Engine,
    stack: Stack,
    folder: RunFolder,
    arrivals: ArrivalsProbe,
    had_outage: HadOutage,
    *,
    has_faults: bool,
) -> Probe | None:
    """Return the probe that follows inserts through CDC. It is needed if there are tracer events,
    or faults that may delay inserts. Return None if it is not needed, if the workload watches no
    table, or if no engine reads one by CDC."""
    settings = stack.settings
    workload = find_workload(settings.workload)
    if not (settings.tracer_events_per_second or has_faults):
        return None
    if not (workload.watched_table and "debezium" in engine.needs_in(settings)):
        return None
    topic, kinds = workload.cdc_topic(workload.watched_table), workload.watched_kinds
    return PurchasesProbe(stack.endpoints.kafka, topic, kinds, arrivals, folder, had_outage)
