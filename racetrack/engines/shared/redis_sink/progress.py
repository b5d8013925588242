"""Reads an engine's progress from Redis: first the stored counts, then the published changes. Every
change is reported exactly once, with the time at which this client received it."""

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from racetrack.clock import now_ms
from racetrack.engines.contract import Progress, Summary
from racetrack.engines.shared.redis_sink.connection import ANSWER_WITHIN_S, connected
from racetrack.errors import RacetrackError

if TYPE_CHECKING:
    import redis

PROGRESS = "ad_events_progress"  # name of the hash and of the channel
LOOK_EVERY_S = 0.2  # how often to check `stop`; messages are read as they arrive


def follow(endpoint: str, stop: threading.Event) -> Iterator[Summary | Progress]:
    """Yield the engine's count of each partition whenever it changes, and the sum of the counts.
    End when `stop` is set, after yielding everything published before.

    Raises:
        RacetrackError: the connection to Redis was lost, or a published message is invalid.
    """
    counted: dict[int, Progress] = {}
    with connected(endpoint) as client, _channel(client) as channel:
        for progress in _begin(client, channel):
            counted[progress.partition] = progress
            yield progress
        if counted:
            yield _sum(counted, now_ms())
        while True:
            last_look = stop.is_set()
            message = channel.get_message(timeout=0 if last_look else LOOK_EVERY_S)
            if message:
                progress = _published(message["data"])
                counted[progress.partition] = progress
                yield progress
                yield _sum(counted, progress.timestamp_ms)
            elif last_look:
                return


def stored_progress(client: "redis.Redis") -> list[Progress]:
    """Return the counts now stored in the hash, in the order of the partitions."""
    return _of_hash(client.hgetall(PROGRESS))


def _begin(client: "redis.Redis", channel: "redis.client.PubSub") -> list[Progress]:
    """Return the counts now stored in the hash, and discard the channel messages that these counts
    already include.

    The transaction that reads the hash also publishes a marker message on a temporary channel. The
    counts include all messages that are received before the marker.
    """
    mark = f"racetrack-{uuid4()}"
    channel.subscribe(PROGRESS, mark)
    # Wait until both subscriptions are confirmed: messages published earlier are lost.
    for _ in range(2):
        _next(channel)
    transaction = client.pipeline(transaction=True)
    transaction.hgetall(PROGRESS)
    transaction.publish(mark, "")
    stored, _ = transaction.execute()
    while _next(channel)["channel"] != mark:
        pass
    return _of_hash(stored)


def _channel(client: "redis.Redis") -> "redis.client.PubSub":
    subscription: redis.client.PubSub = client.pubsub()  # type: ignore[no-untyped-call]
    return subscription


def _next(channel: "redis.client.PubSub") -> dict[str, Any]:
    message: dict[str, Any] | None = channel.get_message(timeout=ANSWER_WITHIN_S)
    if message is None:
        raise RacetrackError(f"Redis did not confirm within {ANSWER_WITHIN_S:.0f} s.")
    return message


def _of_hash(stored: Any) -> list[Progress]:
    at_ms = now_ms()
    rows = {int(partition): json.loads(value) for partition, value in stored.items()}
    return [
        Progress(at_ms, partition, int(row["total"]), int(row["max_received_at"]))
        for partition, row in sorted(rows.items())
    ]


def _published(text: str) -> Progress:
    try:
        row = json.loads(text)
        partition, total, newest = (
            int(row[name]) for name in ("partition", "total", "max_received_at")
        )
        return Progress(now_ms(), partition, total, newest)
    except (ValueError, TypeError, KeyError) as error:
        raise RacetrackError(f"The engine published invalid progress: {text!r}") from error


def _sum(counted: dict[int, Progress], at_ms: int) -> Summary:
    newest_ms = max(progress.max_received_at_ms for progress in counted.values())
    total = sum(progress.total for progress in counted.values())
    return Summary(at_ms, total, newest_ms, at_ms - newest_ms)
