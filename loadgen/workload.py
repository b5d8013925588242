"""The contract between the generator and a workload, a folder `racetrack/workloads/<name>/`:
its package `load` has a function `make(config, read)` that returns a `Workload`.

What is asked once, at the start, is in `Workload`. Only a `Renderer` works for each event.
"""

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
    """A topic of one partition beside the main one, and the messages that it begins with: the text
    of each is its key and its value.
    """

    name: str
    messages: Sequence[bytes] = ()


class Renderer:
    """Renders up to `capacity` events of the main topic at a time into `messages`, an array of
    rd_kafka_message_t for one partition. `clear` begins a batch; `events` and `one` append to it.
    """

    messages: Any
    count: int

    def share(self, partition: int) -> Any:
        """A partition's share of the events, in the form that `events` wants."""
        raise NotImplementedError

    def clear(self) -> None:
        """Begin a new batch."""
        raise NotImplementedError

    def events(self, share: Any, first: int, count: int, due_ms: int) -> None:
        """Append events first..first+count-1 (0-based) of a partition, all due at `due_ms` (epoch
        milliseconds). They fit, and their numbers are of one block of 2**32.
        """
        raise NotImplementedError

    def one(self, event: Any, due_ms: int) -> None:
        """Append an extra, as `Events.derived` gave it."""
        raise NotImplementedError


class Events:
    """The events of the main topic."""

    # By partition: its part of the rate is in proportion to it.
    weights: Sequence[int]

    def renderer(self, capacity: int) -> Renderer:
        """What a worker renders with."""
        raise NotImplementedError

    def derived(self, source: str, n: int) -> tuple[int, Any]:
        """(partition, event) of extra n (0-based): what comes with event n of this source, one of
        `derived_from`."""
        raise NotImplementedError


class SeedError(Exception):
    """What is seeded beside the database can't be. Its text is one line."""


class Workload:
    """What is sent, what is seeded, and what changes."""

    name: str
    # The main topic; its partitions are a setting of the generator.
    topic: str
    # The others.
    topics: Sequence[Topic]
    # The names of the sources whose events each bring an extra one into the main topic.
    derived_from: Sequence[str] = ()

    def database(self) -> Database:
        """The database, not yet connected."""
        raise NotImplementedError

    def seed_beside(self, deadline_s: float, log: Callable[[str], None]) -> None:
        """Fill what engines look things up in beside the database, if the stack has that, before
        any event flows. SeedError if it is not there by `deadline_s`, a time of time.monotonic().
        """

    def sources(self, schedule: Callable[[], Schedule]) -> list[Source]:
        """What changes in the database; `schedule` makes one at rate 0."""
        raise NotImplementedError

    def events(self, library: Library) -> Events:
        """What the main topic is sent."""
        raise NotImplementedError


def names() -> list[str]:
    """The workloads that there are, the default one first."""
    workloads = importlib.import_module("racetrack.workloads")
    return sorted(workloads.names(), key=lambda name: name != workloads.DEFAULT)


def make(config: Config, read: Reader) -> Workload:
    """The workload that is asked for. ConfigError: one of its settings can't be used."""
    side = importlib.import_module("racetrack.workloads").side(config.workload, "load")
    found: Workload = side.make(config, read)
    return found
