"""Contract between the generator and a workload: the package `racetrack/workloads/<name>/load` has
a function `make(config, read)` that returns a `Workload`.

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
    """A secondary topic, which has one partition, and its initial messages. Each text is both key
    and value."""

    name: str
    messages: Sequence[bytes] = ()


class Renderer:
    """Renders up to `capacity` events of the main topic at a time into `messages`, an array of
    rd_kafka_message_t for one partition. `clear` begins a batch; `events` and `one` append to it.
    """

    messages: Any
    count: int

    def share(self, partition: int) -> Any:
        """Return a partition's share of the events, for use with `events`."""
        raise NotImplementedError

    def follow(self, share: Any, schedule: Schedule) -> None:
        """Let the events of a share depend on the schedule of its partition. By default, they do
        not."""

    def clear(self) -> None:
        """Begin a new batch."""
        raise NotImplementedError

    def events(self, share: Any, first: int, count: int, due_ms: int) -> None:
        """Append events first..first+count-1 (0-based) of a partition, all due at `due_ms` (epoch
        milliseconds). The batch has room for them, and all are in one block of 2**32 events (see
        `sequence.keys_for`)."""
        raise NotImplementedError

    def one(self, event: Any, due_ms: int) -> None:
        """Append a derived event, as returned by `Events.derived`."""
        raise NotImplementedError


class Events:
    """The events of the main topic."""

    # One weight per partition: the partition's rate is proportional to it.
    weights: Sequence[int]

    def renderer(self, capacity: int) -> Renderer:
        """Return a renderer for a worker."""
        raise NotImplementedError

    def derived(self, source: str, n: int) -> tuple[int, Any]:
        """Return (partition, event) of derived event n (0-based): the one caused by event n of a
        source in `derived_from`."""
        raise NotImplementedError


class SeedError(Exception):
    """Filling a store other than the database, such as Redis, failed. The message is one line."""


class Workload:
    """Events, initial data, and changes of a workload."""

    name: str
    # The main topic; the number of its partitions is a setting of the generator.
    topic: str
    # All other topics.
    topics: Sequence[Topic]
    # Sources whose events each cause a derived event in the main topic.
    derived_from: Sequence[str] = ()
    # One of `topics`, which gets the position of each derived event (`loadgen.positions`); empty if
    # no topic does.
    positions: str = ""

    def database(self) -> Database | None:
        """Return the database, not yet connected; None if the workload has no tables.

        Raises ConfigError without a password."""
        return None

    def seed_beside(self, deadline_s: float, log: Callable[[str], None]) -> None:
        """Fill other stores that engines read, such as Redis, before any event is sent.

        Raises SeedError after `deadline_s`, a time of time.monotonic()."""

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
