"""The load generator's part of Nexmark: persons, auctions, bids, and tracer events. It has no
database."""

from __future__ import annotations

from typing import Callable

from loadgen.config import Config, Reader
from loadgen.rdkafka import Library
from loadgen.schedule import Schedule
from loadgen.source import Source
from loadgen.tracers import TracerEvents
from loadgen.workload import Topic, Workload

from racetrack.workloads.nexmark.load import settings
from racetrack.workloads.nexmark.load.events import NexmarkEvents

# Topic with the position of each tracer event.
POSITIONS = "nexmark_tracers"


class NexmarkLoad(Workload):
    """See `loadgen.workload.Workload`."""

    name = "nexmark"
    topics = (Topic(POSITIONS),)
    derived_from = (TracerEvents.name,)
    positions = POSITIONS

    def __init__(self, nexmark: settings.NexmarkSettings) -> None:
        self._settings = nexmark
        self.topic = nexmark.topic

    def sources(self, schedule: Callable[[], Schedule]) -> list[Source]:
        # Both of each partition's auctions get a bid after the partition's last event.
        settings = self._settings
        last_events = 2 * settings.partitions
        return [TracerEvents(schedule(), settings.tracer_events_milli_per_s, last_events)]

    def events(self, library: Library) -> NexmarkEvents:
        return NexmarkEvents(self._settings, library.ffi)


def make(config: Config, read: Reader) -> NexmarkLoad:
    """Create the workload for the load generator; see `loadgen.workload`."""
    return NexmarkLoad(settings.load(config, read))
