"""Ad events, which have no keys and are distributed evenly over the partitions."""

from __future__ import annotations

from typing import Any

from loadgen.popularity import zipf
from loadgen.tracers import partition_of
from loadgen.workload import Events

from racetrack.workloads.ads.load.render import PaddedRenderer, Renderer
from racetrack.workloads.ads.load.sequence import Ids
from racetrack.workloads.ads.load.settings import AdsSettings


class AdEvents(Events):
    """See `loadgen.workload.Events`. `ffi` must define rd_kafka_message_t."""

    def __init__(self, settings: AdsSettings, ffi: Any) -> None:
        self._settings, self._ffi = settings, ffi
        self.weights = [1] * settings.partitions

    def renderer(self, capacity: int) -> Renderer:
        settings = self._settings
        ids, size = Ids.of(settings), settings.event_bytes
        popularity = zipf(len(ids.ads), settings.key_skew) if settings.key_skew else None
        every = self._ffi, ids, capacity, settings.seed, settings.partitions
        skews: dict[str, Any] = {"with_skew": settings.with_skew, "popularity": popularity}
        return PaddedRenderer(*every, size=size, **skews) if size else Renderer(*every, **skews)

    def derived(self, _source: str, n: int) -> tuple[int, int]:
        """Return the event of tracer event n: its partition, and the number of its ad in the form
        that `Renderer.one` expects."""
        partition = partition_of(n, self._settings.partitions)
        return partition, partition
