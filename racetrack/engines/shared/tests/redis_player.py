"""Plays an engine that writes into Redis as Yahoo's benchmark was published, for runs of the real
stack: a thread of the test's."""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import redis
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from racetrack import terminal
from racetrack.clock import now_ms
from racetrack.config import load
from racetrack.engines.contract import Access, Engine, Progress, Reader, Summary
from racetrack.engines.shared.redis_sink import progress, views
from racetrack.machine_lock import machine_lock
from racetrack.results.run import RunArguments
from racetrack.run.experiment import run_once
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from racetrack.workloads.contract import find_workload

if TYPE_CHECKING:
    pass

WINDOW_MS = 10_000
FLUSH_EVERY_S = 0.2
BATCH = 10_000


@dataclass
class Counted:
    """What has been counted of a partition."""

    total: int = 0
    max_received_at: int = 0


@dataclass
class Player(Engine):
    """Engine that counts the first events of its first partition twice."""

    name = "player"
    title = "The player"
    needs = ("registry", "debezium", "redis")
    twice: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def load_demo(self, stack: Stack) -> None:
        self._thread = threading.Thread(target=self._play, args=[stack])
        self._thread.start()

    def unload(self, stack: Stack) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        return progress.follow(stack.endpoints.redis, stop)

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        return views.reader(access)

    def usage_hints(self, stack: Stack) -> list[str]:
        return []

    def _play(self, stack: Stack) -> None:
        topic, partitions = find_workload("ads").topic.name, stack.settings.pageviews_partitions
        host, _, port = stack.endpoints.redis.rpartition(":")
        settings = {"bootstrap.servers": stack.endpoints.kafka, "group.id": "player"}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(partitions)])
        with redis.Redis(host=host, port=int(port), decode_responses=True) as client:
            sink = Sink(client)
            while not self._stop.is_set():
                for message in consumer.consume(BATCH, FLUSH_EVERY_S):
                    if not message.error():
                        partition, event = (
                            message.partition() or 0,
                            json.loads(message.value() or b""),
                        )
                        sink.count(partition, event)
                        if partition == 0 and self.twice:
                            self.twice -= 1
                            sink.count(partition, event)
                sink.flush()
        consumer.close()


class Sink:
    """What has been counted and not yet written, and what has been written."""

    def __init__(self, client: "redis.Redis") -> None:
        self._client = client
        self._campaigns: dict[str, str] = {}
        self._seen: Counter[tuple[str, int]] = Counter()
        self._windows: dict[tuple[str, int], str] = {}
        self._lists: dict[str, str] = {}
        self._counted: dict[int, Counted] = {}
        self._changed: set[int] = set()

    def count(self, partition: int, event: Mapping[str, str | int]) -> None:
        at_ms, ad = int(event["event_time"]), str(event["ad_id"])
        counted = self._counted.setdefault(partition, Counted())
        counted.total += 1
        counted.max_received_at = max(counted.max_received_at, at_ms)
        self._changed.add(partition)
        if event["event_type"] == "view":
            if ad not in self._campaigns:
                self._campaigns[ad] = str(self._client.get(ad))
            self._seen[self._campaigns[ad], at_ms - at_ms % WINDOW_MS] += 1

    def flush(self) -> None:
        """All of it in one transaction."""
        transaction, sent_ms = self._client.pipeline(transaction=True), now_ms()
        for (campaign, start_ms), seen in self._seen.items():
            if (campaign, start_ms) not in self._windows:
                windows = self._lists.setdefault(campaign, str(uuid4()))
                window = self._windows[campaign, start_ms] = str(uuid4())
                transaction.hset(campaign, str(start_ms), window)
                transaction.hset(campaign, "windows", windows)
                transaction.lpush(windows, str(start_ms))
            window = self._windows[campaign, start_ms]
            transaction.hincrby(window, "seen_count", seen)
            transaction.hset(window, "time_updated", str(sent_ms))
        for partition in self._changed:
            counted = asdict(self._counted[partition])
            transaction.hset(progress.PROGRESS, str(partition), json.dumps(counted))
            message = json.dumps({"partition": partition, "at_ms": sent_ms, **counted})
            transaction.publish(progress.PROGRESS, message)
        transaction.execute()
        self._seen.clear()
        self._changed.clear()


def race(player: Player, per_s: int, seconds: int, **settings: str) -> Path:
    """An experiment with it, verified; its run folder."""
    asked = RunArguments(
        pageviews_per_s=per_s,
        wait_s=5,
        samples=seconds,
        delay_s=1,
        verify=True,
        faults=(),
        decide_within_s=0,
    )

    def find_engine(_name: str) -> Engine:
        return player

    given = load({"WORKLOAD": "ads", **settings})
    with machine_lock(), terminal.guarded(print) as guard:
        return run_once(player.name, asked, given, Screen(), guard, find_engine=find_engine)
