"""Measures a simple Python producer for comparison: confluent-kafka's `produce` on CPython.

    python3 bench/confluent_producer.py BOOTSTRAP TOPIC PARTITIONS MESSAGES LINGER_MS BATCH_BYTES

Sends the same messages as the load generator, grouped by partition in the same way, and prints one
line of JSON.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from confluent_kafka import Producer
from loadgen.popularity import zipf
from loadgen.producer import BATCH
from loadgen.sequence import Stream, mix32
from racetrack.workloads.shop.load.render import head_piece, page_piece, stamp_piece
from racetrack.workloads.shop.load.sequence import CHANNELS, page_number

USERS, ITEMS, SEED = 10_000, 1_000, 42
MASK = 0xFFFFFFFF


def produce(producer: Any, topic: str, partitions: int, messages: int) -> None:
    """Send `messages` pageviews in batches, to one partition after the other."""
    heads = [head_piece(user) for user in range(USERS + 1)]
    keys = [b"%d" % user for user in range(USERS + 1)]
    pages = [page_piece(n, ITEMS) for n in range((ITEMS + USERS) * len(CHANNELS))]
    items, users = zipf(ITEMS), zipf(USERS)
    streams = [Stream(SEED, f"pageviews/{p}").keys(0) for p in range(partitions)]
    done = 0
    while done < messages:
        partition = done // BATCH % partitions
        key1, key2 = streams[partition]
        stamp = stamp_piece(time.time_ns() // 1_000_000)
        for n in range(done, min(done + BATCH, messages)):
            user = 1 + users.pick(mix32((n + key1) & MASK))
            page = page_number(mix32((n + key2) & MASK), items, users)
            value = heads[user] + pages[page] + stamp
            try:
                producer.produce(topic, value, keys[user], partition)
            except BufferError:
                producer.poll(0.01)
                producer.produce(topic, value, keys[user], partition)
        done += BATCH
        producer.poll(0)


def main() -> None:
    """Run the command line."""
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    bootstrap, topic, partitions, messages, linger_ms, batch_bytes = sys.argv[1:]
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "0",
            "linger.ms": linger_ms,
            "batch.size": int(batch_bytes),
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 524_288,
            "delivery.report.only.error": True,
        }
    )
    producer.list_topics(topic, timeout=10)
    start_s = time.monotonic()
    produce(producer, topic, int(partitions), int(messages))
    left = producer.flush(60)
    if left:
        sys.exit(f"confluent_producer: {left} messages did not leave in 60 s")
    print(json.dumps({"messages": int(messages), "elapsed_s": time.monotonic() - start_s}))


if __name__ == "__main__":
    main()
