"""Events of all partitions. They have no keys and are distributed evenly over the partitions."""

from __future__ import annotations

from typing import Any

from loadgen.workload import Events

from racetrack.workloads.nexmark.load.render import Renderer
from racetrack.workloads.nexmark.load.sequence import Auction, Bid
from racetrack.workloads.nexmark.load.settings import NexmarkSettings
from racetrack.workloads.nexmark.load.texts import prepare
from racetrack.workloads.nexmark.load.tracers import tracer


class NexmarkEvents(Events):
    """See `loadgen.workload.Events`. `ffi` must define rd_kafka_message_t."""

    def __init__(self, settings: NexmarkSettings, ffi: Any) -> None:
        self._settings, self._ffi = settings, ffi
        self.weights = [1] * settings.partitions

    def renderer(self, capacity: int) -> Renderer:
        seed = self._settings.seed
        return Renderer(self._ffi, prepare(seed), capacity, seed, self._settings.partitions)

    def derived(self, _source: str, n: int) -> tuple[int, Auction | Bid]:
        return tracer(n, self._settings.partitions, is_auction=self._settings.traces_auctions)
