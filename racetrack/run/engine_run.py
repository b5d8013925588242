"""One engine of a session: loading of its demo, and the probes that follow it."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from racetrack.engines.contract import DemoError, Engine
from racetrack.errors import EngineFailed, RacetrackError
from racetrack.probes import refused_input
from racetrack.probes.base import CurvesFile, HadOutage, Probe
from racetrack.probes.views import DelayProbe, ReadsProbe, ViewsProbe
from racetrack.results.folder import RunFolder
from racetrack.run.checks import check_services, services_of
from racetrack.stack.contract import OnReady, Stack, ignore
from racetrack.workloads.contract import find_workload


class WhenAllReady:
    """Calls `begin` once all of these services are ready. Passed to `Stack.start`."""

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
        self.delay = DelayProbe(engine, stack, folder, curves, had_outage)
        self.probes: list[Probe] = []  # those that have been started
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-demo")
        self._loaded: Future[float] | None = None

    def on_ready(self) -> OnReady:
        """Return a function for `Stack.start` that begins to load the demo as soon as all services
        are ready, except those for which the demo's script itself waits."""
        settings = self._stack.settings
        if not (waits_for := set(self.engine.demo_waits_for(settings))):
            return ignore
        needed = set(services_of(self.engine, settings)) - waits_for
        return WhenAllReady(needed, self.begin_to_load)

    def begin_to_load(self) -> Future[float]:
        """Begin to load the demo, unless that has begun. The result is the seconds that it took."""
        if not self._loaded:
            self._loaded = self._loader.submit(self._load_demo)
        return self._loaded

    def _load_demo(self) -> float:
        began = time.monotonic()
        self.engine.load_demo(self._stack)
        return time.monotonic() - began

    @property
    def counted(self) -> int:
        """The engine's latest count."""
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

    @contextmanager
    def explaining_failures(self) -> Iterator[None]:
        """If the engine fails inside the context because of a message, add that message to the
        error."""
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
