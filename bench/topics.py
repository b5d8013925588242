"""Measures what it costs to receive the tracer rows in the topics of views, and how late they come.

    python bench/topics.py [rows per second and topic] [seconds]

A process writes rows like those of two of the shop's views into topics, every 10 ms, and some of
them are tracer rows. The harness's own code follows them, in this process.
"""

import json
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from racetrack.clock import now_ms
from racetrack.config import Settings, load
from racetrack.engines.shared.upsert import new_topics, tracer
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.machine_lock import machine_lock
from racetrack.probes.usage import cpu_s_of
from racetrack.stack.native.stack import NativeStack
from racetrack.workloads.contract import find_workload

WRITE_EVERY_S = 0.01
TRACER_ROW_EVERY = 250  # one tracer row among this many rows
WARM_UP_S = 5.0
TOPIC = "bench.{}"
ITEM = {"name": "gadget", "category": "widgets", "revenue": 350123.5, "items_sold": 712}
EMAILS = {"owner_email": "user_123@example.com", "viewer_email": "user_567@example.com"}


def write(kafka: KafkaEndpoint, per_s: int) -> None:
    """Write rows endlessly. In a tracer row, the count or the time is when it was written."""
    settings = load()
    keys = {view.view: view.keys(settings) for view in find_workload("shop").traced_views}
    items, profiles = keys["item_summary"], keys["profile_views_enriched"]
    producer = Producer(kafka.librdkafka({"linger.ms": 0, "acks": 1}))
    written, due_s = 0, time.monotonic()
    while True:
        at_ms = now_ms()
        for number in range(written, written + round(per_s * WRITE_EVERY_S)):
            which = number // TRACER_ROW_EVERY % len(items)
            is_traced = number % TRACER_ROW_EVERY == 0
            item = items[which] if is_traced else number % 1_000
            profile = profiles[which] if is_traced else number % 10_000
            for view, row in (
                ("item_summary", {"item_id": item, **ITEM, "orders": at_ms, "pageviews": at_ms}),
                ("profile_views_enriched", {"owner_id": profile, "received_at": at_ms, **EMAILS}),
            ):
                value = json.dumps(row, separators=(",", ":"))
                producer.produce(TOPIC.format(view), value, str(number % 1_000))
        written += round(per_s * WRITE_EVERY_S)
        producer.poll(0)
        due_s += WRITE_EVERY_S
        time.sleep(max(0.0, due_s - time.monotonic()))


class Follower(threading.Thread):
    """Follows the tracer rows; records how long after its writing each was received."""

    def __init__(self, kafka: KafkaEndpoint, settings: Settings) -> None:
        super().__init__(daemon=True)
        rows = tracer.by_topic(find_workload("shop").traced_views, settings, TOPIC.format)
        self.stop = threading.Event()
        self._seen = tracer.follow(kafka, rows, self.stop)
        self.late_ms: list[int] = []

    def run(self) -> None:
        """Follow until `stop` is set."""
        for seen in self._seen:
            self.late_ms.append(seen.timestamp_ms - seen.value)


def used_pct(pids: Sequence[int], for_s: float) -> tuple[float, float]:
    """Return the CPU use of these processes and of this process, in percent of a core."""
    before_s, own_s = cpu_s_of(pids), time.process_time()
    time.sleep(for_s)
    used_s = cpu_s_of(pids) - before_s, time.process_time() - own_s
    return 100 * used_s[0] / for_s, 100 * used_s[1] / for_s


def main(per_s: int = 10_000, for_s: float = 20.0) -> None:
    """Start a broker, write, and print CPU use and delays."""
    settings = load()
    stack, say = NativeStack(settings), lambda line: print(line, file=sys.stderr)
    with machine_lock(), tempfile.TemporaryDirectory() as logs:
        stack.prepare(["broker"], say)
        try:
            stack.start(["broker"], Path(logs), say)
            kafka, (broker,) = stack.endpoints.kafka, stack.pids(["broker"]).values()
            views = {view.view for view in find_workload("shop").traced_views}
            new_topics.make(kafka, sorted(map(TOPIC.format, views)))
            # A forked process could not use librdkafka, which this process has used.
            spawning = multiprocessing.get_context("spawn")
            writer = spawning.Process(target=write, args=(kafka, per_s))
            writer.start()
            time.sleep(WARM_UP_S)
            without_pct, _ = used_pct(broker, for_s)
            follower = Follower(kafka, settings)
            follower.start()
            time.sleep(WARM_UP_S)
            follower.late_ms.clear()
            broker_pct, client_pct = used_pct(broker, for_s)
            late_ms = sorted(follower.late_ms)
            follower.stop.set()
            follower.join()
            writer.kill()
        finally:
            stack.stop(say)
    print(
        f"{2 * per_s:,} rows/s: client {client_pct:.1f} %, broker {broker_pct:.1f} %"
        f" (without client {without_pct:.1f} %) of a core; received after"
        f" p50 {statistics.median(late_ms):.0f} ms, p99 {late_ms[int(0.99 * len(late_ms))]:.0f} ms"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
