"""A stack of any runtime: the order of its start and end, its watchdog, and `up.json`."""

import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack import kafka_endpoint
from racetrack.config import Settings
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack import net, processes
from racetrack.stack.contract import (
    Endpoints,
    OnReady,
    RunningStack,
    Say,
    ServiceClock,
    Stack,
    ignore,
)
from racetrack.stack.lifetime import UpFile, Watchdog, require_not_running
from racetrack.stack.provided import Provided
from racetrack.stack.supervisor import Supervisor


class SupervisedStack(Stack, Supervisor):
    """The part of a stack that is the same in every runtime. A runtime is a subclass: it implements
    `Supervisor`, and how its units are measured."""

    def __init__(self, settings: Settings, root: Path) -> None:
        self.settings, self.root = settings, root
        self._services: Sequence[str] = ()
        self._logs = root / "logs"  # used if no other folder is given
        self._note = UpFile(root)
        self._watchdog = Watchdog(self.runtime, settings.stack_name)
        self._provided = Provided(settings)

    @property
    def clocks(self) -> Mapping[str, ServiceClock]:
        return self._provided.clocks

    @property
    def endpoints(self) -> Endpoints:
        s = self.settings
        host = s.reach_address
        return Endpoints(
            kafka=kafka_endpoint.elsewhere(s) or KafkaEndpoint(f"{host}:{s.kafka_port}"),
            registry=f"http://{host}:{s.schema_registry_port}",
            connect=f"http://{host}:{s.connect_port}",
            mysql=net.mysql(s),
            loadgen_host=host,
            loadgen_port=s.loadgen_port,
            redis=f"{host}:{s.redis_port}",
        )

    def prepare(self, services: Sequence[str], say: Say) -> None:
        self._watchdog.wait_for_last(say)
        require_not_running(self.running())
        if cleared := self.clear():
            say(f"Cleared what a killed run left: {cleared}.")
        self.obtain(self._units(self._provided.check(services, say)), say)

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        self._watchdog.begin(logs.parent if logs else None, say, self._provided.environment())
        self.root.mkdir(mode=0o700, exist_ok=True)
        self._services, self._logs = services, logs or self._logs
        self._logs.mkdir(exist_ok=True)

        def report(unit: str) -> None:
            for service in services:
                if self.unit(service) == unit:
                    on_ready(service)

        self.spawn(self._units(services), say, report)

    def apart(self, services: Sequence[str]) -> list[str]:
        return [self.shown(unit) for unit in self._units(services)]

    def log_of(self, service: str) -> Path:
        return self._logs / f"{self.shown(self.unit(service))}.log"

    def kill(self, services: Sequence[str]) -> None:
        """End services as a crash would; see `racetrack.stack.contract.Stack`.

        Raises:
            RacetrackError: a service would lose its data.
        """
        for service in services:
            if not self.survives_kill(service):
                raise RacetrackError(
                    f"{service} can't be killed in the runtime {self.runtime}: its data would be"
                    " lost. Pause it instead, or set RUNTIME=native."
                )
        self.kill_units(self._units(services))

    def pause(self, service: str) -> None:
        self.signal(self.unit(service), signal.SIGSTOP)

    def resume(self, service: str) -> None:
        self.signal(self.unit(service), signal.SIGCONT)

    def restart(self, service: str) -> None:
        self.respawn(self.unit(service))

    def stop(self, say: Say) -> None:
        self._watchdog.wait_for_last(say)
        began, left_by = time.monotonic(), self._note.run_name()
        ended = self.end()
        self._provided.remove(say, left_by)
        processes.remove(self.root)  # last: with the note in it, a failed stop can be repeated
        self._watchdog.dismiss()
        if ended:
            say(f"  {ended} in {time.monotonic() - began:.1f} s")

    def speed_up_next_start(self, say: Say) -> None:
        """Do nothing: images contain everything that speeds up a start."""

    def leave_running(self, engine: str) -> None:
        services = self.apart(self._services)
        self._note.write(self.runtime, engine, self.settings.workload, services)
        self._watchdog.dismiss()

    def running(self) -> RunningStack | None:
        if self._note.runtime() is None:
            return None
        return self._note.read({self.shown(unit): pids for unit, pids in self.alive().items()})

    def _units(self, services: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(map(self.unit, services)))
