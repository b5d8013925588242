"""Trouble made on purpose while the stack is measured: what `--fault` may say, and doing it."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from racetrack import units
from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Engine
from racetrack.errors import UsageError
from racetrack.probes.delay import DelayProbe
from racetrack.probes.thread import Probe
from racetrack.probes.usage import Meter
from racetrack.results.run import DoneFault, FaultLog
from racetrack.run.readiness import ALWAYS
from racetrack.stack.contract import Say, Stack

_FORM = re.compile(r"(kill|pause):([a-z]+)@([\w.]+)(?:\+([\w.]+))?")
FORM = "kill:SERVICE@10s, kill:SERVICE@10s+5s (it stays dead for 5 s) or pause:SERVICE@10s+5s"
ENGINE = "engine"
# What may be killed. The registry has its schemas in memory only, so that what is in the topics
# could not be read any more, and Redis all that it was given; without the generator nothing is
# measured.
KILLED = ("broker", "debezium", "mysql")
PAUSED = (*KILLED, "registry", "redis")


@dataclass(frozen=True)
class Fault:
    """`how` is `kill` or `pause`, `whom` a service or `engine`. It begins `at_s` seconds after the
    rate was set; the service goes on, or is started again, `for_s` seconds later."""

    text: str
    how: Literal["kill", "pause"]
    whom: str
    at_s: float
    for_s: float


def parse(text: str) -> Fault:
    """A fault as `--fault` takes it: `kill:debezium@10s`, `pause:broker@10s+5s`.

    Raises:
        UsageError: it is not of that form, or names what can't be killed or paused.
    """
    found = _FORM.fullmatch(text)
    if not found:
        raise UsageError(f"{text!r} is no fault: it takes {FORM}.")
    _, whom, at, lasts = found.groups()
    try:
        at_s, for_s = units.parse_duration_s(at), units.parse_duration_s(lasts or "0")
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}.") from None
    how: Literal["kill", "pause"] = "kill" if found[1] == "kill" else "pause"
    allowed = (ENGINE, *(KILLED if how == "kill" else PAUSED))
    if whom not in allowed:
        raise UsageError(f"{text!r}: {how} takes one of {', '.join(allowed)}, not {whom!r}.")
    if how == "pause" and not lasts:
        raise UsageError(f"{text!r} does not say for how long: pause:{whom}@{at}+5s.")
    return Fault(text, how, whom, at_s, for_s)


def services_hit(fault: Fault, engine: Engine, settings: Settings) -> tuple[str, ...]:
    """The services that a fault is done to.

    Raises:
        UsageError: an experiment with this engine has none of them.
    """
    if fault.whom != ENGINE:
        if fault.whom not in (*ALWAYS, *engine.needs):
            raise UsageError(f"{fault.text!r}: {engine.title} runs without {fault.whom}.")
        return (fault.whom,)
    services = engine.services_in(settings)
    if not services:
        raise UsageError(f"{fault.text!r}: {engine.title} runs elsewhere, out of reach.")
    return services


def require_possible(fault: Fault, services: Sequence[str], stack: Stack) -> None:
    """Look before anything starts whether what is killed can go on afterwards.

    Raises:
        UsageError: in this runtime, it would have lost what it kept.
    """
    lost = [name for name in services if fault.how == "kill" and not stack.survives_kill(name)]
    if lost:
        raise UsageError(
            f"{fault.text!r}: in containers, what {', '.join(lost)} keeps would go with it. Pause"
            " it instead, or set RUNTIME=native."
        )


class Away:
    """Which services are away on purpose, and when they were: a question to one of them that got no
    answer meanwhile is no news."""

    def __init__(self) -> None:
        self._spans: list[tuple[str, float | None]] = []  # service, until when (None: still)
        self._lock = threading.Lock()

    @contextmanager
    def of(self, services: Sequence[str]) -> Iterator[None]:
        """They are away in here."""
        with self._lock:
            self._spans += [(service, None) for service in services]
        try:
            yield
        finally:
            with self._lock:
                for service in services:
                    self._spans[self._spans.index((service, None))] = (service, time.monotonic())

    def at_any_time_since(self, since_s: float, services: Sequence[str]) -> bool:
        """Whether one of them is away, or was since then (a time of time.monotonic())."""
        with self._lock:
            return any(
                service in services and (until_s is None or until_s >= since_s)
                for service, until_s in self._spans
            )


class FaultInjector(Probe):
    """Does one fault after the other, each at its time or, if the one before lasted longer, after
    that. Their seconds count from `start`."""

    name = "What was to be done to the stack"

    def __init__(
        self,
        faults: Sequence[Fault],
        *,
        engine: Engine,
        stack: Stack,
        away: Away,
        meter: Meter,
        delay: DelayProbe,
        say: Say,
    ) -> None:
        super().__init__()
        self._faults = sorted(faults, key=lambda fault: fault.at_s)
        self._engine, self._stack, self._away = engine, stack, away
        self._meter, self._delay, self._say = meter, delay, say
        self._done: list[DoneFault] = []
        self.began_ms = 0
        self.all_done = not faults

    def start(self) -> None:
        """From now on their seconds count."""
        self.began_ms = now_ms()
        super().start()

    def stop(self) -> None:
        """Ask it to end. It ends once the stack does: it may be waiting for a service to start."""
        self.stopping.set()

    def join(self) -> None:
        """Wait for its end; after the stack has been stopped."""
        if self._thread.ident:
            self._thread.join()

    def record(self) -> FaultLog:
        """What `run.json` holds of them under `faults`, as it is now."""
        done = tuple(each.model_copy() for each in self._done)
        return FaultLog(from_ms=self.began_ms, done=done)

    def run(self) -> None:
        """Do them all."""
        began_s = time.monotonic()
        for fault in self._faults:
            if self.stopping.wait(max(0.0, began_s + fault.at_s - time.monotonic())):
                return
            services = services_hit(fault, self._engine, self._stack.settings)
            self._say(f"  {fault.text}: {fault.how} {', '.join(services)}")
            done = DoneFault(
                fault=fault.text,
                how=fault.how,
                services=services,
                at_ms=now_ms(),
                until_ms=None,
                restart_s=None,
                reload_s=None,
            )
            self._done.append(done)
            with self._away.of(services):
                (self._kill if fault.how == "kill" else self._pause)(fault, done)
            if self.stopping.is_set():
                return
            done.until_ms = now_ms()
            self._say(
                f"  {fault.text}: {', '.join(services)} back after"
                f" {(done.until_ms - done.at_ms) / 1000:.1f} s"
            )
        self.all_done = True

    def _pause(self, fault: Fault, done: DoneFault) -> None:
        try:
            for service in done.services:
                self._stack.pause(service)
            self.stopping.wait(fault.for_s)
        finally:
            for service in done.services:
                self._stack.resume(service)

    def _kill(self, fault: Fault, done: DoneFault) -> None:
        with self._meter.ending(done.services):
            self._stack.kill(done.services)
        if fault.whom == ENGINE:
            self._delay.lost(now_ms())
        if self.stopping.wait(fault.for_s):
            return
        done.restart_s = _seconds(lambda: self._restart(done.services))
        self._meter.look_anew()
        if fault.whom == ENGINE and not self.stopping.is_set():
            done.reload_s = _seconds(lambda: self._engine.reload_demo(self._stack))

    def _restart(self, services: Sequence[str]) -> None:
        for service in services:
            self._stack.restart(service)


def _seconds(work: Callable[[], None]) -> float:
    began_s = time.monotonic()
    work()
    return round(time.monotonic() - began_s, 3)
