"""Follows what an engine says in Redis of its progress: first what stands there, then what it
publishes, no change left out and none told twice."""

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

PROGRESS = "ad_events_progress"  # the hash, and the channel
LOOK_EVERY_S = 0.2  # whether to stop; messages are taken as they come


def follow(endpoint: str, stop: threading.Event) -> Iterator[Summary | Progress]:
    """Yield the engine's count of each partition whenever it changes, and the sum, until `stop` is
    set. What was published before that is still yielded.

    Raises:
        RacetrackError: the connection to Redis was lost, or somebody published something else.
    """
    counted: dict[int, Progress] = {}
    with connected(endpoint) as client, _channel(client) as channel:
        for progress in _standing(client, channel):
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


def standing(client: "redis.Redis") -> list[Progress]:
    """Return the rows of the hash now, by partition."""
    return _of_hash(client.hgetall(PROGRESS))


def _standing(client: "redis.Redis", channel: "redis.client.PubSub") -> list[Progress]:
    """Return the rows of the hash now, all older than the channel's next messages.

    The hash is read in one transaction with a message on a channel of our own, and what comes
    before that message is in the hash.
    """
    mark = f"racetrack-{uuid4()}"
    channel.subscribe(PROGRESS, mark)
    for _ in range(2):  # what is published before they are confirmed is not heard
        _next(channel)
    transaction = client.pipeline(transaction=True)
    transaction.hgetall(PROGRESS)
    transaction.publish(mark, "")
    held, _ = transaction.execute()
    while _next(channel)["channel"] != mark:
        pass
    return _of_hash(held)


def _channel(client: "redis.Redis") -> "redis.client.PubSub":
    found: redis.client.PubSub = client.pubsub()  # type: ignore[no-untyped-call]
    return found


def _next(channel: "redis.client.PubSub") -> dict[str, Any]:
    message: dict[str, Any] | None = channel.get_message(timeout=ANSWER_WITHIN_S)
    if message is None:
        raise RacetrackError(f"Redis did not confirm within {ANSWER_WITHIN_S:.0f} s.")
    return message


def _of_hash(held: Any) -> list[Progress]:
    at_ms = now_ms()
    rows = {int(partition): json.loads(value) for partition, value in held.items()}
    return [
        Progress(at_ms, partition, int(row["total"]), int(row["max_received_at"]))
        for partition, row in sorted(rows.items())
    ]


def _published(text: str) -> Progress:
    try:
        said = json.loads(text)
        return Progress(
            int(said["at_ms"]),
            int(said["partition"]),
            int(said["total"]),
            int(said["max_received_at"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise RacetrackError(f"What was published is no progress: {text!r}") from error


def _sum(counted: dict[int, Progress], at_ms: int) -> Summary:
    newest_ms = max(progress.max_received_at_ms for progress in counted.values())
    total = sum(progress.total for progress in counted.values())
    return Summary(at_ms, total, newest_ms, at_ms - newest_ms)
