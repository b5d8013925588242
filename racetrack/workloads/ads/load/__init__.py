"""The load generator's part of Yahoo's benchmark: events, initial rows, tracer events, and moves of
ads."""

from __future__ import annotations

from typing import Callable

from loadgen.config import Config, Reader
from loadgen.rdkafka import Library
from loadgen.schedule import Schedule
from loadgen.source import Source
from loadgen.tracers import TracerEvents
from loadgen.workload import Workload

from racetrack.workloads.ads.load import redis, settings
from racetrack.workloads.ads.load.database import AdsDatabase
from racetrack.workloads.ads.load.events import AdEvents
from racetrack.workloads.ads.load.moves import Moves


class AdsLoad(Workload):
    """See `loadgen.workload.Workload`."""

    name = "ads"
    topics = ()
    derived_from = (TracerEvents.name,)

    def __init__(self, config: Config, ads: settings.AdsSettings) -> None:
        self._config, self._settings = config, ads
        self.topic = ads.topic

    def database(self) -> AdsDatabase:
        return AdsDatabase(self._config, self._settings)

    def seed_beside(self, deadline_s: float, log: Callable[[str], None]) -> None:
        """Store the initial data in Redis, if an engine uses it."""
        if self._settings.redis:
            redis.wait_and_seed(self._settings.redis, self._settings, deadline_s, log)

    def sources(self, schedule: Callable[[], Schedule]) -> list[Source]:
        return [
            TracerEvents(schedule(), self._settings.tracer_events_milli_per_s),
            Moves(self._settings, schedule()),
        ]

    def events(self, library: Library) -> AdEvents:
        return AdEvents(self._settings, library.ffi)


def make(config: Config, read: Reader) -> AdsLoad:
    """Create the workload for the load generator; see `loadgen.workload`."""
    return AdsLoad(config, settings.load(config, read))
