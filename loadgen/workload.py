"""Contract between the generator and a workload, a folder `racetrack/workloads/<name>/`: its
package `load` has a function `make(config, read)` that returns a `Workload`.

Methods of `Workload` are called once, at the start. Only a `Renderer` runs for each event."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

if TYPE_CHECKING:
    from loadgen.config import Config, Reader
    from loadgen.mysql import Database
    from loadgen.rdkafka import Library
    from loadgen.schedule import Schedule
    from loadgen.source import Source


class Topic(NamedTuple):
    """A topic with one partition beside the main one, and its initial messages: each text is both
    key and value."""

    name: str
    messages: Sequence[bytes] = ()


class Renderer:
    """Renders up to `capacity` events of the main topic at a time into `messages`, an array of
    rd_kafka_message_t for one partition. `clear` begins a batch; `events` and `one` append to it.
    """

    messages: Any
    count: int

    def share(self, partition: int) -> Any:
        """Return a partition's share of the events, as `events` takes it."""
        raise NotImplementedError

    def clear(self) -> None:
        """Begin a new batch."""
        raise NotImplementedError

    def events(self, share: Any, first: int, count: int, due_ms: int) -> None:
        """Append events first..first+count-1 (0-based) of a partition, all due at `due_ms` (epoch
        milliseconds). They fit, and are in one block of 2**32 events."""
        raise NotImplementedError

    def one(self, event: Any, due_ms: int) -> None:
        """Append a derived event, as returned by `Events.derived`."""
        raise NotImplementedError


class Events:
    """The events of the main topic."""

    # By partition: its share of the rate is proportional to its weight.
    weights: Sequence[int]

    def renderer(self, capacity: int) -> Renderer:
        """Return a renderer for a worker."""
        raise NotImplementedError

    def derived(self, source: str, n: int) -> tuple[int, Any]:
        """Return (partition, event) of derived event n (0-based): the one caused by event n of a
        source in `derived_from`."""
        raise NotImplementedError


class SeedError(Exception):
    """Seeding of a store beside the database failed. The message is one line."""


class Workload:
    """Events, initial data, and changes of a workload."""

    name: str
    # The main topic; its partitions are a setting of the generator.
    topic: str
    # The others.
    topics: Sequence[Topic]
    # Sources whose events each cause a derived event in the main topic.
    derived_from: Sequence[str] = ()

    def database(self) -> Database:
        """Return the database, not yet connected."""
        raise NotImplementedError

    def seed_beside(self, deadline_s: float, log: Callable[[str], None]) -> None:
        """Fill stores beside the database in which engines look things up, such as Redis, before
        any event is sent. Raises SeedError after `deadline_s`, a time of time.monotonic()."""

    def sources(self, schedule: Callable[[], Schedule]) -> list[Source]:
        """Return the sources of database changes; `schedule` returns a schedule at rate 0."""
        raise NotImplementedError

    def events(self, library: Library) -> Events:
        """Return the events of the main topic."""
        raise NotImplementedError


def names() -> list[str]:
    """Return the names of all workloads, the default one first."""
    workloads = importlib.import_module("racetrack.workloads")
    return sorted(workloads.names(), key=lambda name: name != workloads.DEFAULT)


def make(config: Config, read: Reader) -> Workload:
    """Return the configured workload. Raises ConfigError for an invalid setting."""
    side = importlib.import_module("racetrack.workloads").side(config.workload, "load")
    found: Workload = side.make(config, read)
    return found
