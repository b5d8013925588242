"""Measures what it costs to receive the tracer rows in the topics of views, and how late they come.

    PYTHONPATH=. python bench/topics.py [rows per second and topic] [seconds]

A process writes rows like those of two of the shop's views into topics, every 10 ms, and some of
them are tracer rows. The harness's own code follows them, in this process.
"""

import argparse
import json
import multiprocessing
import signal
import statistics
import sys
import threading
import time
from collections.abc import Sequence

from confluent_kafka import Producer
from racetrack.clock import now_ms
from racetrack.config import Settings, load
from racetrack.engines.shared.upsert import new_topics, tracer
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.usage import cpu_s_of
from racetrack.workloads.contract import find_workload

import with_broker

WRITE_EVERY_S = 0.01
TRACER_ROW_EVERY = 250  # one tracer row among this many rows
WARM_UP_S = 5.0
TOPIC = "bench.{}"
ITEM = {"name": "gadget", "category": "widgets", "revenue": 350123.5, "items_sold": 712}
EMAILS = {"owner_email": "user_123@example.com", "viewer_email": "user_567@example.com"}


def write(kafka: KafkaEndpoint, per_s: int) -> None:
    """Write rows endlessly. In a tracer row, the count or the time is when it was written."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
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


def main() -> int:
    """Start a broker, write, and print CPU use and delays."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "per_s", type=int, nargs="?", default=10_000, help="rows a second and topic"
    )
    parser.add_argument("for_s", type=float, nargs="?", default=20.0, help="seconds")
    arguments = parser.parse_args()
    per_s, for_s = arguments.per_s, arguments.for_s
    warm_up_s, settings = min(WARM_UP_S, for_s), load()
    with with_broker.running(["broker"]) as stack:
        kafka, (broker,) = stack.endpoints.kafka, stack.pids(["broker"]).values()
        views = {view.view for view in find_workload("shop").traced_views}
        new_topics.make(kafka, sorted(map(TOPIC.format, views)))
        # A forked process could not use librdkafka, which this process has used.
        spawning = multiprocessing.get_context("spawn")
        writer = spawning.Process(target=write, args=(kafka, per_s), daemon=True)
        writer.start()
        time.sleep(warm_up_s)
        without_pct, _ = used_pct(broker, for_s)
        follower = Follower(kafka, settings)
        follower.start()
        time.sleep(warm_up_s)
        follower.late_ms.clear()
        broker_pct, client_pct = used_pct(broker, for_s)
        late_ms = sorted(follower.late_ms)
        follower.stop.set()
        follower.join()
        writer.kill()
    if not late_ms:
        sys.exit(f"No tracer row arrived in {for_s:g} s; measure for longer.")
    print(
        f"{2 * per_s:,} rows/s: client {client_pct:.1f} %, broker {broker_pct:.1f} %"
        f" (without client {without_pct:.1f} %) of a core; received after"
        f" p50 {statistics.median(late_ms):.0f} ms, p99 {late_ms[int(0.99 * len(late_ms))]:.0f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(with_broker.exit_code(main))
