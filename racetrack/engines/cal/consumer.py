"""Process of the calibration engine, which counts events with exactly known defects.

    python -m racetrack.engines.cal.consumer

At most once per CAL_CYCLE_MS, it writes its counts, and the state of its view if there are tracer
events, to the observation path CAL_PATH (`sinks.py`). Its output has only lines about the defects:

- `RACETRACK stalled timestamp=<ms>, partition=<k>`: partition k stalls from this time on (-1: no
  partition stalls);
- every second, `RACETRACK capacity timestamp=<ms>, allowed=<n>, seed=<n>`: how many events the
  process could have counted since its start if there had always been a backlog.

The environment contains the variables of `KafkaEndpoint`, CAL_TOPIC, CAL_DUE (name of the messages'
field with the due time), CAL_VIEWS (`views.Views`), CAL_CONNINFO (on the path through PostgreSQL),
CAL_REDIS (on the path through Redis), READY_FILE (a file that is created once all partitions are
assigned), ENGINE_REPLICAS, and the settings in the `.env` in this folder. One process simulates all
replicas.
"""

import json
import math
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from racetrack import clock
from racetrack.engines.cal.capacity import Capacity
from racetrack.engines.cal.sinks import Count, PostgresSink, RedisSink, Sink, TopicSink, Total
from racetrack.engines.cal.views import Views
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.results.defects import NO_PARTITION, InjectedDefect

LOOK_EVERY_S = 0.01
NOTE_EVERY_S = 1.0
SEEDS = 1_000_000
WHOLE = 1 - 1e-6  # one event, allowing for rounding errors
BATCH = 10_000
ANSWER_WITHIN_S = 10.0
STAMP_DIGITS = 13


def defect_of(environment: Mapping[str, str]) -> InjectedDefect:
    """Return the defect that the settings in `environment` define. Its capacity is the one of all
    ENGINE_REPLICAS replicas together."""
    defaults = asdict(InjectedDefect())
    of_one = InjectedDefect(
        **{
            name: type(default)(environment[f"CAL_{name.upper()}"])
            for name, default in defaults.items()
        }
    )
    return of_one.with_replicas(int(environment["ENGINE_REPLICAS"]))


def stalled_at(defect: InjectedDefect, since_start_s: float) -> int:
    """Return the partition that is stalled at this time; NO_PARTITION if none is."""
    until_s = defect.stall_after_s + (defect.stall_for_s or math.inf)
    stalls = defect.stall_after_s <= since_start_s < until_s
    return defect.stalled_partition if stalls else NO_PARTITION


class Counting:
    """State of each partition: the events that were read but are not counted yet, the number of
    counted ones, and the newest of these."""

    def __init__(self, partitions: int, defect: InjectedDefect) -> None:
        self.total = [0] * partitions
        self.newest_ms = [-1] * partitions  # received_at of the newest counted event
        self._waiting: list[deque[int]] = [deque() for _ in range(partitions)]
        self._defect = defect
        self._capacity = Capacity(defect, defect.seed)
        self.allowed = 0.0  # integral of the capacity since the start, in events
        self._used = 0.0  # part of `allowed` that was used for counting or lost while idle

    def add(self, partition: int, received_at_ms: Iterable[int]) -> None:
        """Add events of a partition, in the order in which they were read."""
        self._waiting[partition].extend(received_at_ms)

    def count(self, now_ms: int, since_start_s: float) -> None:
        """Count the events that the defect allows to be counted by now. The current time is
        given twice: in epoch milliseconds, and in seconds since the start."""
        until_ms = now_ms - self._defect.delay_ms
        stalled = stalled_at(self._defect, since_start_s)
        free = [partition for partition in range(len(self.total)) if partition != stalled]
        if self._defect.capacity_per_s:
            self._count_oldest(free, until_ms, since_start_s)
        else:
            for partition in free:
                self._count_all(partition, until_ms)

    def _count_all(self, partition: int, until_ms: int) -> None:
        waiting, before = self._waiting[partition], len(self._waiting[partition])
        newest_ms = self.newest_ms[partition]
        while waiting and waiting[0] <= until_ms:
            newest_ms = max(newest_ms, waiting.popleft())
        self.total[partition] += before - len(waiting)
        self.newest_ms[partition] = newest_ms

    def _count_oldest(self, partitions: list[int], until_ms: int, now_s: float) -> None:
        """Count the oldest events of all partitions first, up to the capacity until now.
        Capacity while no event is waiting is lost."""
        self.allowed = self._capacity.work_by(now_s)
        while self.allowed - self._used >= WHOLE:
            heads = ((self._waiting[p][0], p) for p in partitions if self._waiting[p])
            oldest_ms, partition = min(heads, default=(until_ms + 1, -1))
            if oldest_ms > until_ms:
                self._used = self.allowed
                return
            self._waiting[partition].popleft()
            self.total[partition] += 1
            self.newest_ms[partition] = max(self.newest_ms[partition], oldest_ms)
            self._used += 1


class Burner:
    """Spends `us_per_event` microseconds of CPU time on each counted event. `cpu_s` returns
    this thread's CPU time in seconds."""

    def __init__(self, us_per_event: float, cpu_s: Callable[[], float] = time.thread_time) -> None:
        self._s_per_event, self._cpu_s = us_per_event / 1e6, cpu_s
        self._paid = 0

    def burn(self, counting: Counting) -> None:
        """Spend the CPU time of the events that were counted since the last call."""
        counted = sum(counting.total)
        until_s = self._cpu_s() + (counted - self._paid) * self._s_per_event
        self._paid = counted
        while self._cpu_s() < until_s:
            pass


class Telling:
    """Finds the counts that have changed since the last report."""

    def __init__(self, partitions: int) -> None:
        self._reported = [0] * partitions

    def changed(self, counting: Counting) -> list[Count]:
        """Return the changed rows of the progress view."""
        before, self._reported = self._reported, list(counting.total)
        return [
            Count(partition, total, counting.newest_ms[partition])
            for partition, total in enumerate(counting.total)
            if total != before[partition]
        ]


class Trailing:
    """A view with the counts of `behind_ms` ago. It contains, for each partition, the due time of
    the newest event."""

    def __init__(self, partitions: int, behind_ms: int) -> None:
        self._counted: deque[tuple[int, list[int]]] = deque()
        self._shown_ms = [-1] * partitions
        self._behind_ms = behind_ms

    def changed(self, counting: Counting, now_ms: int) -> dict[int, int]:
        """Return the changed rows: partition → due time of the newest event."""
        self._counted.append((now_ms, list(counting.newest_ms)))
        before, shown = self._shown_ms, self._shown_ms
        while self._counted and self._counted[0][0] <= now_ms - self._behind_ms:
            shown = self._counted.popleft()[1]
        self._shown_ms = shown
        return {
            partition: newest_ms
            for partition, newest_ms in enumerate(shown)
            if newest_ms != before[partition]
        }


def write_counts(sink: Sink, counting: Counting, counts: Sequence[Count], spread_ms: int) -> None:
    """Write changed counts. If they are spread, the rows are written one by one, the last one
    `spread_ms` milliseconds after the first."""
    if not counts:
        return
    total = Total(sum(counting.total), max(counting.newest_ms))
    if not spread_ms or len(counts) == 1:
        sink.write_counts(total, counts)
        return
    began_s, apart_s = time.monotonic(), spread_ms / 1000 / (len(counts) - 1)
    for number, count in enumerate(counts):
        time.sleep(max(0.0, began_s + number * apart_s - time.monotonic()))
        sink.write_counts(total if number == 0 else None, [count])


def due_ms(value: bytes, field: str) -> int:
    """Return when a message was due (epoch milliseconds), from a field of its JSON. To save time,
    the JSON is not parsed if it has the generator's format: `"received_at": 1732184400000` with
    exactly STAMP_DIGITS digits."""
    name = f'"{field}": '.encode()
    place = value.rfind(name)
    begin = place + len(name)
    end = begin + STAMP_DIGITS
    if place >= 0 and value[begin:end].isdigit() and not value[end : end + 1].isdigit():
        return int(value[begin:end])
    return int(json.loads(value)[field])


def by_partition(messages: Iterable[Message], field: str) -> dict[int, list[int]]:
    """Return the due times of a batch's messages by partition, in the order of the messages.

    Raises:
        SystemExit: a message has no valid due time, or the broker returned an error.
    """
    due_by_partition: dict[int, list[int]] = {}
    for message in messages:
        if error := message.error():
            raise SystemExit(f"cal: {error}")
        partition = int(message.partition() or 0)
        try:
            due = due_ms(message.value() or b"", field)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as wrong:
            place = f"topic={message.topic()}, partition={partition}, offset={message.offset()}"
            # racetrack/probes/refused_input.py parses this line.
            raise SystemExit(f"RACETRACK refused {place}, field=, reason={wrong!r}") from wrong
        due_by_partition.setdefault(partition, []).append(due)
    return due_by_partition


def assigned(kafka: KafkaEndpoint, topic: str) -> tuple[Consumer, int]:
    """Return a consumer that reads the topic from its beginning, and the number of partitions."""
    consumer = Consumer(
        kafka.librdkafka(
            {
                "group.id": "cal",  # required, but nothing is committed
                "enable.auto.commit": False,
                # Read ahead as far as possible. If messages that can't be counted yet stayed in the
                # broker, one partition could be read ahead of another by a whole fetch.
                "queued.min.messages": 1_000_000,
                "fetch.queue.backoff.ms": 1,
            }
        )
    )
    topic = kafka.topic(topic)
    metadata = consumer.list_topics(topic, timeout=ANSWER_WITHIN_S).topics[topic]
    if metadata.error:
        raise SystemExit(f"cal: {topic}: {metadata.error}")
    consumer.assign(
        [TopicPartition(topic, p, OFFSET_BEGINNING) for p in sorted(metadata.partitions)]
    )
    return consumer, len(metadata.partitions)


class Notes:
    """Log lines about the injected defects: stalls, and the integral of the capacity."""

    def __init__(self, defect: InjectedDefect) -> None:
        self._defect = defect
        self._stalled = NO_PARTITION
        self._next_s = 0.0

    def lines(self, counting: Counting, now_ms: int, since_start_s: float) -> list[str]:
        """Return the lines that are due now."""
        lines = []
        if (stalls := stalled_at(self._defect, since_start_s)) != self._stalled:
            self._stalled = stalls
            lines.append(f"RACETRACK stalled timestamp={now_ms}, partition={stalls}")
        if self._defect.capacity_per_s and since_start_s >= self._next_s:
            self._next_s = since_start_s + NOTE_EVERY_S
            lines.append(
                f"RACETRACK capacity timestamp={now_ms}, allowed={counting.allowed:.3f},"
                f" seed={self._defect.seed}"
            )
        return lines


def run(
    consumer: Consumer, partitions: int, defect: InjectedDefect, field: str, sink: Sink
) -> None:
    """Count and report until a signal ends the process."""
    counting, notes = Counting(partitions, defect), Notes(defect)
    telling, trailing = Telling(partitions), Trailing(partitions, defect.view_behind_ms)
    burner = Burner(defect.cpu_us_per_event)
    start_s = report_at_s = time.monotonic()
    while True:
        for partition, stamps in by_partition(
            consumer.consume(BATCH, min(LOOK_EVERY_S, defect.cycle_ms / 1000)), field
        ).items():
            counting.add(partition, stamps)
        now_s, now_ms = time.monotonic(), clock.now_ms()
        counting.count(now_ms, now_s - start_s)
        burner.burn(counting)
        lines = notes.lines(counting, now_ms, now_s - start_s)
        if now_s >= report_at_s:
            write_counts(sink, counting, telling.changed(counting), defect.spread_ms)
            if traced := trailing.changed(counting, now_ms):
                sink.write_traced(traced)
            # Reports have a fixed timetable, so that one late report does not delay all later ones.
            report_at_s = max(report_at_s + defect.cycle_ms / 1000, now_s)
        if lines:
            os.write(1, "".join(f"{line}\n" for line in lines).encode())


def main() -> None:
    """Read the environment, connect, report that the process is ready, and count."""
    defect = defect_of(os.environ)
    defect = replace(defect, seed=defect.seed or 1 + secrets.randbelow(SEEDS))
    topic, field = os.environ["CAL_TOPIC"], os.environ["CAL_DUE"]
    kafka = KafkaEndpoint.from_environment(os.environ)
    consumer, partitions = assigned(kafka, topic)
    if defect.stalled_partition >= partitions:
        raise SystemExit(
            f"cal: CAL_STALLED_PARTITION={defect.stalled_partition} can't be used:"
            f" {topic} has the partitions 0 to {partitions - 1}."
        )
    sink = _sink(kafka)
    Path(os.environ["READY_FILE"]).touch()
    run(consumer, partitions, defect, field, sink)


def _sink(kafka: KafkaEndpoint) -> Sink:
    """Return the destination that the environment names."""
    views = Views.of_text(os.environ["CAL_VIEWS"])
    if conninfo := os.environ.get("CAL_CONNINFO"):
        return PostgresSink(conninfo, views)
    if redis := os.environ.get("CAL_REDIS"):
        return RedisSink(redis, views)
    return TopicSink(kafka, views)


if __name__ == "__main__":
    main()
