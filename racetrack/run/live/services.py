"""Pausing, killing and restarting of services in a live session, in the background."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from racetrack.clock import now_ms
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError, UsageError
from racetrack.results.run import DoneFault
from racetrack.run import faults
from racetrack.run.checks import services_of, why_unreadable
from racetrack.run.faults import Fault, ServiceControl
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import workload_in

RUNNING, PAUSED, KILLED, FAILED = "running", "paused", "killed", "failed"
BUSY = {"pause": "pausing", "resume": "resuming", "kill": "being killed", "restart": "restarting"}
# Action → the status that it requires, and the status to which it leads.
NEEDS = {"pause": RUNNING, "resume": PAUSED, "kill": RUNNING, "restart": KILLED}
LEADS_TO = {"pause": PAUSED, "resume": RUNNING, "kill": KILLED, "restart": RUNNING}
AddEvent = Callable[[str, str, str], None]  # kind of event, text, and target


class Services:
    """The targets of a user's actions: the engines and services that can be paused, killed and
    restarted. `on_killed` is called with the name of an engine that has been killed."""

    def __init__(
        self,
        engine: Engine,
        stack: Stack,
        control: ServiceControl,
        add_event: AddEvent,
        on_killed: Callable[[str], None],
    ) -> None:
        self._engine, self._stack, self._control = engine, stack, control
        self._add_event, self._on_killed = add_event, on_killed
        self._members = tuple(member.name for member in engine.members)
        shared = set(services_of(engine, stack.settings))
        names = [*self._members, *(name for name in faults.PAUSED if name in shared)]
        self.status = dict.fromkeys(names, RUNNING)
        self.texts: dict[str, str] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="services")
        self._stopping = threading.Event()
        self._done: list[DoneFault] = []

    def why_not(self, how: str, target: str) -> str:
        """Return why an action can't be carried out now; empty if it can."""
        status = self.status.get(target)
        if status is None:
            return f"{target!r} is none of {', '.join(self.status)}."
        if status != NEEDS[how]:
            return f"{target} is {status}."
        try:
            self._services(how, target)
        except UsageError as error:
            return str(error)
        return ""

    def why_no_reads(self) -> str:
        """Return why the engines' views can't be read now; empty if they can."""
        settings = self._stack.settings
        for member in self._engine.members:
            if (status := self.status[member.name]) != RUNNING:
                return f"{member.name} is {status}."
            if why := why_unreadable(member, settings, workload_in(settings)):
                return why
        return ""

    def begin(self, how: str, target: str) -> None:
        """Begin an action. Call this only if `why_not` returned an empty text."""
        services = self._services(how, target)
        self.status[target] = BUSY[how]
        self._worker.submit(self._carry_out, how, target, services)

    def fail(self, target: str, why: str) -> None:
        """Record that an engine has failed."""
        self.status[target], self.texts[target] = FAILED, why
        self._add_event("failed", why, target)

    @property
    def faults(self) -> tuple[DoneFault, ...]:
        """Outages so far, for `run.json`."""
        return tuple(fault.model_copy() for fault in self._done)

    def stop(self) -> None:
        """Continue all paused services, and wait for the action that is being carried out."""
        self._stopping.set()
        self._worker.shutdown(cancel_futures=True)
        for target, status in self.status.items():
            if status == PAUSED:
                self._control.resume(self._services("pause", target))
                self.status[target] = RUNNING

    def _services(self, how: str, target: str) -> tuple[str, ...]:
        """Return the services of a target.

        Raises:
            UsageError: the services can't be paused or killed.
        """
        fault_how: Literal["kill", "pause"] = "pause" if how in {"pause", "resume"} else "kill"
        fault = Fault(f"{how} {target}", fault_how, target, 0.0, 0.0)
        if fault_how == "kill" and target not in (*self._members, *faults.KILLED):
            raise UsageError(f"{target} keeps its data only in memory: pause it instead.")
        services = faults.services_hit(fault, self._engine, self._stack.settings)
        faults.require_possible(fault, services, self._stack)
        return services

    def _carry_out(self, how: str, target: str, services: tuple[str, ...]) -> None:
        try:
            text = self._do(how, target, services)
        except (RacetrackError, OSError) as error:
            self.fail(target, f"{how} {target}: {error}")
            return
        self.status[target] = LEADS_TO[how]
        self._add_event(how, text, target)

    def _do(self, how: str, target: str, services: tuple[str, ...]) -> str:
        """Carry out an action; return the text of its event."""
        member = target if target in self._members else None
        if how == "pause":
            self._begin_outage("pause", target, services)
            self._control.pause(services)
            return f"{target} is paused"
        if how == "kill":
            self._begin_outage("kill", target, services)
            self._control.kill(services, member)
            if member:
                self._on_killed(member)
            return f"{target} was killed"
        if how == "resume":
            self._control.resume(services)
            return f"{target} continues after {self._end_outage(target):.1f} s"
        restart_s, reload_s = self._control.restart(services, member, self._stopping)
        away_s = self._end_outage(target, restart_s, reload_s)
        demo = f", demo {reload_s:.1f} s" if reload_s is not None else ""
        return f"{target} runs again after {away_s:.1f} s (restart {restart_s:.1f} s{demo})"

    def _begin_outage(
        self, how: Literal["kill", "pause"], target: str, services: tuple[str, ...]
    ) -> None:
        fault = DoneFault(fault=f"{how}:{target}", how=how, services=services, at_ms=now_ms())
        self._done.append(fault)

    def _end_outage(
        self, target: str, restart_s: float | None = None, reload_s: float | None = None
    ) -> float:
        """Record the end of the target's outage; return how long it lasted, in seconds."""
        mine = [fault for fault in self._done if fault.fault.endswith(f":{target}")]
        fault = mine[-1]
        fault.until_ms, fault.restart_s, fault.reload_s = now_ms(), restart_s, reload_s
        return (fault.until_ms - fault.at_ms) / 1000
