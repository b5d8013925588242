"""A fake engine, stack, generator and broker for tests of the code that uses them. Nothing is
started; the stack records the actions on itself and on the engine."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from racetrack.clock import now_ms
from racetrack.config import Settings, load
from racetrack.engines.contract import Engine, Progress, Summary
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.mysql_endpoint import MysqlEndpoint
from racetrack.stack.contract import (
    Accounting,
    Cluster,
    DataFolder,
    Endpoints,
    NodeAgent,
    OnReady,
    Say,
    ServiceClock,
    Stack,
    Unmeasurable,
    ignore,
)

EVERY_S = 0.01


class Calls:
    """Takes any call, and records it: `pause` of `broker` as "pause broker"."""

    def __init__(self, did: list[str] | None = None) -> None:
        self.did = [] if did is None else did

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given, **_: self.did.append(" ".join([name, *map(str, given)]))


class FakeControl(Calls):
    """The load generator's control port: records commands, and reports a few events."""

    def __enter__(self) -> "FakeControl":
        return self

    def __exit__(self, *_: object) -> None: ...

    def pause(self) -> dict[str, float]:
        self.did.append("pause")
        return {"events": 500.0}

    def settled_counts(self) -> dict[str, list[int]]:
        return {"handed": [4, 3], "refused": [0, 1]}


class FakeLoad(Calls):
    """A session that records its load."""

    def __init__(self, **rates: int) -> None:
        super().__init__()
        self.rates = {"events": 0, **rates}

    @property
    def arrivals(self) -> "FakeLoad":
        return self

    @property
    def counts(self) -> dict[str, Any]:
        return {"now_ms": now_ms(), **{kind: {"rate": of} for kind, of in self.rates.items()}}

    def offer(self, per_s: int, of: str = "events") -> None:
        self.rates[of] = per_s
        self.did.append(f"{of} {per_s}")


class FakeOffsets:
    """End offsets of a broker that has all seven events."""

    def end_offsets(self) -> list[int]:
        return [4, 3]

    def end_offsets_reaching(self, _handed_over: list[int], _within_s: float) -> list[int]:
        return [4, 3]


class FakeStack:
    """A fake stack, without containers or processes."""

    endpoints = Endpoints(
        KafkaEndpoint("127.0.0.1:0"),
        "http://127.0.0.1:0",
        "",
        MysqlEndpoint("127.0.0.1", 0, "shop", "shop", "", "debezium", ""),
        "127.0.0.1",
        8090,
        "127.0.0.1:0",
    )
    unmeasurable: Unmeasurable | None = None
    clocks: Mapping[str, ServiceClock] = {}
    agents: Sequence[NodeAgent] = ()
    unprepared: tuple[str, ...] = ()
    data_in_memory = True
    cluster: Cluster | None = None
    component_folders = helpers = list

    def __init__(self, settings: Settings | None = None, runtime: str = "native") -> None:
        self.settings, self.runtime = settings or load(), runtime
        self.did: list[tuple[str, str]] = []
        self.prepared: list[str] = []
        self.ended: dict[str, str] = {}
        self.folders: list[DataFolder] = []
        self.refuses = False
        self.ready_after: dict[str, threading.Event] = {}  # service → event to wait for

    def as_stack(self) -> Stack:
        return cast(Stack, self)

    def prepare(self, services: Sequence[str], say: Say) -> None:
        self.prepared += services

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        self.did.append(("start", " ".join(services)))
        for service in sorted(services, key=lambda name: name in self.ready_after):
            if service in self.ready_after and not self.ready_after[service].wait(10):
                raise RacetrackError(f"{service} was not ready")
            on_ready(service)

    def stop(self, say: Say) -> None:
        self.did.append(("stop", "all"))

    def speed_up_next_start(self, say: Say) -> None:
        self.did.append(("speed up", "next start"))

    def __getattr__(self, name: str) -> Callable[[str], None]:
        """Record another action on a service or an engine, such as `pause`."""
        return lambda target: self.did.append((name, target))

    def kill(self, services: Sequence[str]) -> None:
        self.did += [("kill", service) for service in services]

    def restart(self, service: str) -> None:
        self.did.append(("restart", service))
        if self.refuses:
            raise RacetrackError(f"{service} did not start")

    def survives_kill(self, service: str) -> bool:
        return self.runtime == "native"

    def apart(self, services: Sequence[str]) -> list[str]:
        return list(services)

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:
        return {service: [os.getpid()] for service in services}

    def accounting(self, service: str) -> Accounting | None:
        return None

    def folders_in_memory(self, service: str) -> list[Path]:
        return []

    def data_folders(self) -> list[DataFolder]:
        return self.folders

    def died(self) -> Mapping[str, str]:
        return self.ended

    def versions(self) -> Mapping[str, str]:
        return {"mysql": "9"}

    def log_of(self, _service: str) -> Path:
        return Path(os.devnull)

    def where_logs(self) -> str:
        return "logs"


class FakeEngine(Engine):
    """A fake engine with two services. It keeps reporting that it has counted `counted` events;
    if that is None, it reports nothing."""

    name, title = "fake", "Fake"
    services: tuple[str, ...] = ("manager", "worker")

    def __init__(self, counted: int | None = 7, needs: tuple[str, ...] = ("debezium",)) -> None:
        self.counted, self.needs = counted, needs

    def load_demo(self, stack: Stack) -> None:
        _noted(stack).append(("load", "demo"))

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        while not stop.wait(EVERY_S):
            if self.counted is not None:
                yield Summary(now_ms(), self.counted, now_ms(), 0.5)

    def versions(self, stack: Stack) -> Mapping[str, str]:
        return {self.name: "1"}

    def usage_hints(self, stack: Stack) -> list[str]:
        return ["IDE: there"]


class SecondEngine(FakeEngine):
    """Another fake engine, for tests of several engines on one input."""

    name, title = "second", "Second"
    services = ("other",)


def _noted(stack: Stack) -> list[tuple[str, str]]:
    return cast(FakeStack, stack).did
