"""Reads views from Redis as Arrow tables. Each table is a consistent state of its view."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Access, NoSuchView, Reader, Seen
from racetrack.engines.shared.redis_sink.connection import connected
from racetrack.engines.shared.redis_sink.progress import stored_progress
from racetrack.workloads.contract import TracedView

if TYPE_CHECKING:
    import pyarrow
    import redis

# Reads the windows of all campaigns as the original benchmark does. Redis runs scripts atomically,
# so the result is consistent.
WINDOWS = """
local rows = {}
for _, campaign in ipairs(redis.call('SMEMBERS', 'campaigns')) do
    local list = redis.call('HGET', campaign, 'windows')
    for _, start in ipairs(list and redis.call('LRANGE', list, 0, -1) or {}) do
        local window = redis.call('HGET', campaign, start)
        local count = window and redis.call('HGET', window, 'seen_count')
        rows[#rows + 1] = {campaign, start, count}
    end
end
return rows
"""
# Returns the sum over the windows of each of some campaigns.
SUMS = """
local sums = {}
for number, campaign in ipairs(ARGV) do
    local list, sum = redis.call('HGET', campaign, 'windows'), 0
    for _, start in ipairs(list and redis.call('LRANGE', list, 0, -1) or {}) do
        local window = redis.call('HGET', campaign, start)
        sum = sum + (window and redis.call('HGET', window, 'seen_count') or 0)
    end
    sums[number] = sum
end
return sums
"""
KEYS_AT_ONCE = 1_000
ASK_EVERY_S = 0.1


@contextmanager
def reader(access: Access) -> Iterator[Reader]:
    """Open a client with its own connection."""
    with connected(access.endpoints.redis) as client:
        yield RedisReader(client)


def follow(
    endpoint: str, views: Sequence[TracedView], settings: Settings, stop: threading.Event
) -> Iterator[Seen]:
    """Yield the tracer values of these views every ASK_EVERY_S seconds, until `stop` is set. Each
    is a sum over the windows of campaigns."""
    keys = {view.name: [*map(str, view.keys(settings))] for view in views}
    with connected(endpoint) as client:
        while not stop.is_set():
            next_s = time.monotonic() + ASK_EVERY_S
            for name, campaigns in keys.items():
                sums = client.eval(SUMS, 0, *campaigns)
                at_ms = now_ms()
                for partition, value in enumerate(sums):
                    yield Seen(at_ms, name, partition, int(value))
            stop.wait(next_s - time.monotonic())


@dataclass(frozen=True)
class RedisReader:
    """See `racetrack.engines.contract.Reader`."""

    client: "redis.Redis"

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":  # noqa: ARG002
        """Return all rows. Filtering by key is not supported, as in the original benchmark."""
        if key:
            raise NoSuchView(f"In Redis, rows of {view} can't be selected by {key}.")
        return _table(self.client, view)


def _table(client: "redis.Redis", view: str) -> "pyarrow.Table":
    import pyarrow as pa

    if view not in _VIEWS:
        raise NoSuchView(f"There is no view {view!r} in Redis.")
    stored = _VIEWS[view]
    kinds = {name: pa.type_for_alias(kind) for name, kind in stored.columns.items()}
    columns = list(zip(*stored.rows(client), strict=True)) or [()] * len(kinds)
    arrays = [pa.array(c, k) for c, k in zip(columns, kinds.values(), strict=True)]
    return pa.table(arrays, names=list(kinds))


def _campaigns(client: "redis.Redis") -> list[Sequence[Any]]:
    return [(campaign,) for campaign in client.smembers("campaigns")]


def _ads(client: "redis.Redis") -> list[Sequence[Any]]:
    """Return (ad, campaign) of all ads. All keys with a string value are ids of ads."""
    ads = sorted(set(client.scan_iter(_type="string", count=KEYS_AT_ONCE)))
    return list(zip(ads, client.mget(ads), strict=True)) if ads else []


def _progress(client: "redis.Redis") -> list[Sequence[Any]]:
    return [(row.partition, row.total, row.max_received_at_ms) for row in stored_progress(client)]


def _summary(client: "redis.Redis") -> list[Sequence[Any]]:
    rows = stored_progress(client)
    if not rows:
        return []
    return [(sum(row.total for row in rows), max(row.max_received_at_ms for row in rows))]


def _windows(client: "redis.Redis") -> list[Sequence[Any]]:
    return [
        (campaign, int(start), None if count is None else int(count))
        for campaign, start, count in client.eval(WINDOWS, 0)
    ]


@dataclass(frozen=True)
class _View:
    columns: Mapping[str, str]  # name → name of the Arrow type
    rows: Callable[["redis.Redis"], list[Sequence[Any]]]


_COUNTED = {"total": "int64", "max_received_at": "int64"}
_VIEWS = {
    "campaigns": _View({"campaign_id": "string"}, _campaigns),
    "ads": _View({"ad_id": "string", "campaign_id": "string"}, _ads),
    "ad_events_progress": _View({"partition": "int64", **_COUNTED}, _progress),
    "ad_events_summary": _View(_COUNTED, _summary),
    "campaign_windows": _View(
        {"campaign_id": "string", "window_start_ms": "int64", "seen_count": "int64"}, _windows
    ),
}
