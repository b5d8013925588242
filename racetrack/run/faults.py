"""Faults injected during a run: parsing of `--fault`, and the injection."""

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

from racetrack import plugins, units
from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError, UsageError
from racetrack.probes.base import Probe
from racetrack.probes.usage import Meter
from racetrack.results.run import DoneFault, FaultLog
from racetrack.run.checks import needed_services
from racetrack.run.engine_run import EngineRun
from racetrack.stack import provided
from racetrack.stack.contract import Cluster, Say, Stack

How = Literal["kill", "pause", "delete", "drain", "cut"]
_FORM = re.compile(
    r"(kill|pause|delete|drain|cut):([a-z][a-z0-9.-]*)@([\w.]+)( events)?(?:\+([\w.]+))?"
)
FORM = (
    "kill:SERVICE@10s, kill:SERVICE@10s+5s (restart after 5 s) or pause:SERVICE@10s+5s; on"
    " Kubernetes also delete:POD@10s, drain:NODE@10s+20s or cut:NODE@10s+20s. With '500k"
    " events' instead of a time, it begins after the window, once the engine has counted so many"
)
ENGINE = "engine"
# Services that can be killed and paused. Registry and Redis keep their data only in memory, so
# killing them would lose it. The generator is excluded because nothing is measured without it.
KILLED = ("broker", "debezium", "mysql")
PAUSED = (*KILLED, "registry", "redis")
IN_CLUSTER = ("delete", "drain", "cut")  # faults of pods and nodes
LASTING = ("pause", "drain", "cut")  # faults with a duration
JOIN_WITHIN_S = 10.0
# Time limit for the engine to count the events after which a fault begins.
COUNTED_WITHIN_S, LOOK_EVERY_S = 600.0, 0.1


@dataclass(frozen=True)
class Fault:
    """A fault: `at_s` seconds after the rate was set, the service `target` (or `engine`) is killed
    or paused, the pod `target` is deleted, or the node `target` is drained or its network cut. It
    is undone `for_s` seconds later. `text` is its command-line form. If `at_events` is not None,
    the fault begins after the window, once the engine has counted that many events."""

    text: str
    how: How
    target: str
    at_s: float
    for_s: float
    at_events: int | None = None


def parse(text: str) -> Fault:
    """Parse a value of `--fault`, such as `kill:debezium@10s` or `pause:broker@10s+5s`.

    Raises:
        UsageError: the syntax is wrong, or the service can't be killed or paused.
    """
    parts = _FORM.fullmatch(text)
    if not parts:
        raise UsageError(f"{text!r} is not a fault. Write {FORM}.")
    _, target, at, events, lasts = parts.groups()
    how = cast(How, parts[1])
    try:
        at_events = units.parse_rate(at) if events else None
        at_s = 0.0 if events else units.parse_duration_s(at)
        for_s = units.parse_duration_s(lasts or "0")
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}.") from None
    if how in ("kill", "pause"):
        allowed = (ENGINE, *(KILLED if how == "kill" else PAUSED))
        if target not in (*allowed, *plugins.engine_names()):
            raise UsageError(f"{text!r}: {how} takes one of {', '.join(allowed)}, not {target!r}.")
    if how in LASTING and not lasts:
        raise UsageError(f"{text!r} has no duration. Write {how}:{target}@{at}{events or ''}+5s.")
    if how == "delete" and lasts:
        raise UsageError(f"{text!r}: a deleted pod is created again at once. Omit +{lasts}.")
    return Fault(text, how, target, at_s, for_s, at_events)


def services_hit(fault: Fault, engine: Engine, settings: Settings) -> tuple[str, ...]:
    """Return the services that a fault affects.

    Raises:
        UsageError: an experiment with this engine does not use the service, or can't reach it.
    """
    if fault.how in IN_CLUSTER:
        return _services_in_cluster(fault, engine, settings)
    member = member_hit(fault, engine)
    if not member:
        if fault.target not in needed_services(engine, settings):
            raise UsageError(
                f"{fault.text!r}: {engine.title} runs without {fault.target} on the workload"
                f" {settings.workload}. Choose another service."
            )
        if fault.target in {service.service for service in provided.configured(settings)}:
            raise UsageError(f"{fault.text!r}: the {fault.target} runs elsewhere, out of reach.")
        return (fault.target,)
    if member.runs_elsewhere(settings):
        raise UsageError(
            f"{fault.text!r}: {member.title} runs outside the stack, so it can't be killed or"
            " paused."
        )
    return member.services_in(settings)


def _services_in_cluster(fault: Fault, engine: Engine, settings: Settings) -> tuple[str, ...]:
    """Return the engine's services that a fault of a pod or node affects: for a pod, its service;
    for a node, all services."""
    services = engine.services_in(settings)
    if fault.how == "delete":
        services = tuple(name for name in services if fault.target.startswith(f"{name}-"))
    if not services:
        raise UsageError(f"{fault.text!r}: {engine.title} has no such pod.")
    return services


def member_hit(fault: Fault, engine: Engine) -> Engine | None:
    """Return the engine that a fault hits; None if it hits a service of the stack.

    Raises:
        UsageError: the fault hits another engine, or does not name one of a group.
    """
    members = {member.name: member for member in engine.members}
    if fault.target == ENGINE:
        if len(members) > 1:
            raise UsageError(
                f"{fault.text!r}: which engine? Name one of {', '.join(members)} instead of"
                f" {ENGINE!r}."
            )
        return engine
    if fault.target in plugins.engine_names() and fault.target not in members:
        raise UsageError(f"{fault.text!r}: this run has no engine {fault.target}.")
    return members.get(fault.target)


def require_possible(fault: Fault, services: Sequence[str], stack: Stack) -> None:
    """Check, before anything starts, that the fault is possible in this runtime, and that services
    keep their data when they are killed.

    Raises:
        UsageError: the fault is not possible, or a service would lose its data.
    """
    if fault.how in IN_CLUSTER:
        if not stack.cluster:
            raise UsageError(f"{fault.text!r}: there are pods and nodes on Kubernetes only.")
        if fault.how == "delete":
            stack.cluster.require_pod(fault.target, services)
        else:
            stack.cluster.require_node(fault.target)
        return
    lost = [name for name in services if fault.how == "kill" and not stack.survives_kill(name)]
    if lost:
        raise UsageError(
            f"{fault.text!r}: in containers, {', '.join(lost)} would lose its data. Pause it"
            " instead, or set RUNTIME=native."
        )


class ExpectedOutages:
    """Periods in which services are killed or paused on purpose. Probes ignore failures in them."""

    def __init__(self) -> None:
        self._spans: list[tuple[str, float | None]] = []  # service, end (None: still lasts)
        self._lock = threading.Lock()

    def begin(self, services: Sequence[str]) -> None:
        """Record that an outage of these services begins."""
        with self._lock:
            self._spans += [(service, None) for service in services]

    def end(self, services: Sequence[str]) -> None:
        """Record that the outage of these services ends."""
        with self._lock:
            for service in services:
                self._spans[self._spans.index((service, None))] = (service, time.monotonic())

    def any_since(self, since_s: float, services: Sequence[str]) -> bool:
        """Return whether any of these services had an outage that ended after `since_s` (monotonic
        clock) or still lasts."""
        with self._lock:
            return any(
                service in services and (until_s is None or until_s >= since_s)
                for service, until_s in self._spans
            )


class ServiceControl:
    """Kills, restarts, pauses and resumes services of a running stack. The outages are expected:
    probes ignore failures in them. After a restart, the demo of an engine (the script that creates
    its views) is loaded again if the engine needs that."""

    def __init__(
        self, runs: Sequence[EngineRun], *, stack: Stack, outages: ExpectedOutages, meter: Meter
    ) -> None:
        self._runs = {run.engine.name: run for run in runs}
        self._stack, self._outages, self._meter = stack, outages, meter

    def counted(self, engine: str | None = None) -> int:
        """Return the number of events that an engine has counted; by default, the slowest one."""
        runs = [self._runs[engine]] if engine else self._runs.values()
        return min(run.counted for run in runs)

    def pause(self, services: Sequence[str]) -> None:
        """Pause services until `resume`."""
        self._outages.begin(services)
        for service in services:
            self._stack.pause(service)

    def resume(self, services: Sequence[str]) -> None:
        """Continue paused services."""
        for service in services:
            self._stack.resume(service)
        self._outages.end(services)

    def kill(self, services: Sequence[str], engine: str | None) -> None:
        """Kill services until `restart`. `engine` is the name of the engine to which they belong,
        if any; record that it loses its counts."""
        self._outages.begin(services)
        with self._meter.killing(services):
            self._stack.kill(services)
        if engine:
            self._runs[engine].delay.record_loss(now_ms())

    def restart(
        self, services: Sequence[str], engine: str | None, stopping: threading.Event
    ) -> tuple[float, float | None]:
        """Restart killed services, and load the demo of their engine again unless `stopping` is
        set. Return the seconds that the restart took, and the seconds that loading took (None if no
        demo was loaded).

        Raises:
            RacetrackError: a service did not start, or the engine refused the demo.
        """
        engines = [engine] if engine else []
        return self._bring_back(services, lambda: self._start(services), engines, stopping)

    @property
    def _cluster(self) -> Cluster:
        if not self._stack.cluster:
            raise RacetrackError("This stack has no pods.")
        return self._stack.cluster

    def remove_pods(self, services: Sequence[str], remove: Callable[[Cluster], None]) -> None:
        """Call `remove` to end some pods of services; their outage lasts until `await_pods`."""
        self._outages.begin(services)
        with self._meter.killing(services):
            remove(self._cluster)

    def await_pods(
        self, services: Sequence[str], stopping: threading.Event
    ) -> tuple[float, float | None]:
        """Wait for the new pods of services, and load the demo of their engines again unless
        `stopping` is set. Return the seconds that waiting took, and the seconds that loading took
        (None if no demo was loaded).

        Raises:
            RacetrackError: a pod did not start, or an engine refused the demo.
        """
        engines = [name for name, run in self._runs.items() if set(services) & {*run.services}]
        cluster = self._cluster

        def start() -> None:
            cluster.undo_drain()
            cluster.wait_until_ready(services)

        return self._bring_back(services, start, engines, stopping)

    def cut(self, services: Sequence[str], node: str, for_s: float) -> None:
        """Cut the network of `node`, on which these services run, for `for_s` seconds."""
        self._outages.begin(services)
        self._cluster.cut(node, for_s)
        self._outages.end(services)

    def _bring_back(
        self,
        services: Sequence[str],
        start: Callable[[], None],
        engines: Sequence[str],
        stopping: threading.Event,
    ) -> tuple[float, float | None]:
        restart_s = _seconds(start)
        self._meter.refresh()
        reload_s = None
        for name in engines if not stopping.is_set() else ():
            engine = self._runs[name].engine
            reload_s = (reload_s or 0.0) + _seconds(partial(engine.reload_demo, self._stack))
        self._outages.end(services)
        return restart_s, reload_s

    def _start(self, services: Sequence[str]) -> None:
        for service in services:
            self._stack.restart(service)


class FaultInjector(Probe):
    """Injects faults one after the other, each at its time after `start`, then those that begin
    after a number of events. A fault is delayed while the previous one lasts."""

    name = "The injection of faults"

    def __init__(
        self,
        faults: Sequence[Fault],
        *,
        engine: Engine,
        settings: Settings,
        control: ServiceControl,
        say: Say,
        counted_within_s: float = COUNTED_WITHIN_S,
    ) -> None:
        super().__init__()
        self._counted_within_s = counted_within_s
        self._faults = sorted(faults, key=lambda fault: (fault.at_events or 0, fault.at_s))
        self._engine, self._settings = engine, settings
        self._control, self._say = control, say
        self._done: list[DoneFault] = []
        self.began_ms = 0
        self.all_done = not faults
        self.window_over = threading.Event()  # faults after a number of events wait for this

    def start(self) -> None:
        """Start the thread. The times of the faults count from now."""
        self.began_ms = now_ms()
        super().start()

    def check(self) -> None:
        """Raise the error that ended the injection, with the fault after which it happened.

        Raises:
            RacetrackError: a service could not be brought back, for example.
        """
        if self._failure and self._done:
            raise RacetrackError(
                f"After {self._done[-1].fault}: {self._failure}"
            ) from self._failure
        super().check()

    def stop(self) -> None:
        """Ask the thread to end, without waiting for it: while it restarts a service, it may only
        end after the stack has been stopped."""
        self.stopping.set()

    def join(self) -> None:
        """Wait for the end of the thread. Call this after the stack has been stopped. A thread that
        does not end in time, because it still loads the demo into a stopped engine, is
        abandoned."""
        if self._thread.ident:
            self._thread.join(JOIN_WITHIN_S)

    def record(self) -> FaultLog:
        """Return the record of the faults so far, for `run.json`."""
        done = tuple(fault.model_copy() for fault in self._done)
        return FaultLog(from_ms=self.began_ms, done=done)

    def run(self) -> None:
        """Inject all faults."""
        began_s = time.monotonic()
        for fault in self._faults:
            if not self._await(fault, began_s):
                return
            services = services_hit(fault, self._engine, self._settings)
            self._say(f"  {fault.text}: {fault.how} {', '.join(services)}")
            done = DoneFault(
                fault=fault.text,
                how=fault.how,
                services=services,
                at_ms=now_ms(),
                counted=self._counted(fault),
                until_ms=None,
                restart_s=None,
                reload_s=None,
            )
            self._done.append(done)
            carry_out: Mapping[str, Callable[[Fault, DoneFault], None]] = {
                "kill": self._kill,
                "pause": self._pause,
                "delete": self._delete,
                "drain": self._drain,
                "cut": self._cut,
            }
            carry_out[fault.how](fault, done)
            if self.stopping.is_set():
                return
            done.until_ms = now_ms()
            self._say(
                f"  {fault.text}: {', '.join(services)} back after"
                f" {(done.until_ms - done.at_ms) / 1000:.1f} s"
            )
        self.all_done = True

    def _await(self, fault: Fault, began_s: float) -> bool:
        """Wait until a fault is due. Return False if the run ends before.

        Raises:
            RacetrackError: the engine did not count enough events in time.
        """
        if fault.at_events is None:
            return not self.stopping.wait(max(0.0, began_s + fault.at_s - time.monotonic()))
        while not self.window_over.is_set():
            if self.stopping.wait(LOOK_EVERY_S):
                return False
        until_s = time.monotonic() + self._counted_within_s
        while self._counted(fault) < fault.at_events:
            if time.monotonic() > until_s:
                raise RacetrackError(
                    f"{fault.text}: the engine counted only {self._counted(fault):,} events within"
                    f" {self._counted_within_s:.0f} s. Choose a smaller number."
                )
            if self.stopping.wait(LOOK_EVERY_S):
                return False
        return True

    def _counted(self, fault: Fault) -> int:
        member = member_hit(fault, self._engine)
        return self._control.counted(member.name if member else None)

    def _pause(self, fault: Fault, done: DoneFault) -> None:
        try:
            self._control.pause(done.services)
            self.stopping.wait(fault.for_s)
        finally:
            self._control.resume(done.services)

    def _kill(self, fault: Fault, done: DoneFault) -> None:
        member = member_hit(fault, self._engine)
        name = member.name if member else None
        self._control.kill(done.services, name)
        if not self.stopping.wait(fault.for_s):
            times = self._control.restart(done.services, name, self.stopping)
            done.restart_s, done.reload_s = times

    def _delete(self, fault: Fault, done: DoneFault) -> None:
        self._control.remove_pods(done.services, lambda there: there.delete_pod(fault.target))
        self._await_pods(done)

    def _drain(self, fault: Fault, done: DoneFault) -> None:
        self._control.remove_pods(done.services, lambda there: there.drain(fault.target))
        if not self.stopping.wait(fault.for_s):
            self._await_pods(done)

    def _await_pods(self, done: DoneFault) -> None:
        times = self._control.await_pods(done.services, self.stopping)
        done.restart_s, done.reload_s = times

    def _cut(self, fault: Fault, done: DoneFault) -> None:
        self._control.cut(done.services, fault.target, fault.for_s)


def _seconds(work: Callable[[], object]) -> float:
    began_s = time.monotonic()
    work()
    return round(time.monotonic() - began_s, 3)
