"""Progress of engines that do not count the main topic, computed from tracer events.

The generator writes the position of each tracer event into the topic `Workload.positions`: the
number of messages of its partition up to and including it. An engine has processed a partition up
to the newest tracer event that all of its traced views contain. A view without tracer rows shows
windows, or counts events of all partitions, which are taken to be processed evenly."""

import json
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from racetrack.engines.contract import Engine, Progress, Seen, Summary
from racetrack.errors import RacetrackError
from racetrack.kafka_client import is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import ALL_PARTITIONS, TracedView, find_workload

if TYPE_CHECKING:
    from confluent_kafka import Consumer

MESSAGES_AT_ONCE = 1_000
# Time in which one look collects positions. Updates have the time at which the client received the
# row, so this delays them, but does not change them.
LOOK_S = 0.05


class Tracer(NamedTuple):
    """A tracer event: its number (0-based), its position in its partition, and its due time."""

    number: int
    position: int
    due_ms: int


NONE = Tracer(-1, 0, 0)


@dataclass
class PartitionTracers:
    """The tracer events of a partition, in the order of the topic."""

    events: list[Tracer] = field(default_factory=list)

    def add(self, event: Tracer) -> bool:
        """Add an event; return whether it is new. A restarted generator may send one again."""
        is_new = not self.events or event.number > self.events[-1].number
        if is_new:
            self.events.append(event)
        return is_new

    def newest(self, view: TracedView, seen: int, number: int) -> Tracer:
        """Return the newest event that a view contains whose value is `seen`. If the value is a
        count, `number` is the number of the last event that it counts.

        A view with a parity never shows the other events, so the one directly after an event that
        it contains counts as contained, too."""
        key, limit = ("due_ms", seen) if view.is_time else ("number", number)
        last = bisect_right(self.events, limit, key=lambda event: getattr(event, key)) - 1
        while last >= 0 and view.parity not in (None, self.events[last].number % 2):
            last -= 1
        if last < 0:
            return NONE
        event = self.events[last]
        after = self.events[last + 1] if last + 1 < len(self.events) else NONE
        is_hidden = view.parity is not None and after.number % 2 != view.parity
        return after if is_hidden and after.position == event.position + 1 else event


class CountedEvents:
    """The number of events of all partitions that a view counts up to each tracer event."""

    def __init__(self, partitions: int) -> None:
        self._numbers, self._totals = list[int](), list[int]()
        self._of_partition = [0] * partitions

    def add(self, partition: int, number: int, count: int) -> None:
        """Add a tracer event, up to which the view counts so many events of its partition."""
        more, self._of_partition[partition] = count - self._of_partition[partition], count
        at = bisect_right(self._numbers, number)
        self._numbers.insert(at, number)
        self._totals.insert(at, self._totals[at - 1] if at else 0)
        for later in range(at, len(self._totals)):  # few: events arrive nearly in order
            self._totals[later] += more

    def newest(self, total: int) -> int:
        """Return the number of the newest tracer event up to which at most `total` events are
        counted; -1 if there is none."""
        at = bisect_right(self._totals, total)
        return self._numbers[at - 1] if at else -1


class Positions:
    """The positions that an engine has reached, by partition, from the tracer events that the
    generator wrote and the values of the engine's traced views."""

    def __init__(self, traced: Sequence[TracedView], partitions: int) -> None:
        self._traced = {view.name: view for view in traced}
        self._tracers = [PartitionTracers() for _ in range(partitions)]
        self._counted = {view.name: CountedEvents(partitions) for view in traced if view.counts}
        self._seen: dict[tuple[str, int], Seen] = {}
        self.reached = [NONE] * partitions

    def add(self, partition: int, event: Tracer) -> None:
        """Add a tracer event that the generator wrote."""
        if not self._tracers[partition].add(event):
            return
        for name, counted in self._counted.items():
            count: Callable[..., int] = self._traced[name].counts  # type: ignore[assignment]
            upto = count(event.position, event.number, partition, len(self._tracers))
            counted.add(partition, event.number, upto)

    def take(self, seen: Seen) -> Iterator[Progress]:
        """Take the new value of a traced view, and yield the progress that follows from it."""
        self._seen[seen.view, seen.partition] = seen
        is_whole = seen.partition == ALL_PARTITIONS
        for partition in range(len(self._tracers)) if is_whole else [seen.partition]:
            yield from self.progress(partition)

    def progress(self, partition: int) -> Iterator[Progress]:
        """Yield the progress in a partition if it has changed since the last call."""
        rows = [
            (view.name, partition if view.key else ALL_PARTITIONS) for view in self._traced.values()
        ]
        known = [self._seen[row] for row in rows if row in self._seen]
        if not known or len(known) < len(rows):
            return
        newest = (self._newest(seen, partition) for seen in known)
        slowest = min(newest, key=lambda event: event.position)
        if slowest.position != self.reached[partition].position:
            self.reached[partition] = slowest
            # An event that never shows may be due after the row that stands for it.
            at_ms = max(slowest.due_ms, *(seen.timestamp_ms for seen in known))
            yield Progress(at_ms, partition, slowest.position, slowest.due_ms)

    def summary(self, at_ms: int) -> Summary:
        """Return the sum over all partitions."""
        newest_ms = max(event.due_ms for event in self.reached)
        total = sum(event.position for event in self.reached)
        return Summary(at_ms, total, newest_ms, float(at_ms - newest_ms))

    def _newest(self, seen: Seen, partition: int) -> Tracer:
        view = self._traced[seen.view]
        if view.counts:
            number = self._counted[view.name].newest(seen.value)
        else:
            number = _number_of(view.parity, seen.value, partition, len(self._tracers))
        return self._tracers[partition].newest(view, seen.value, number)


def _number_of(parity: int | None, count: int, partition: int, partitions: int) -> int:
    """Return the number of the last of `count` tracer events of a partition, or of those of a
    parity; see `TracedView`."""
    pair, which = divmod(count - 1, 2) if parity is None else (count - 1, parity)
    return 2 * (pair * partitions + partition) + which


class TracedProgress:
    """Progress of an engine whose workload has `positions`. `take` gets the values of its traced
    views; `updates` yields what `Engine.updates` yields in other workloads."""

    def __init__(self, engine: Engine, stack: Stack) -> None:
        self._engine, self._stack = engine, stack
        settings = stack.settings
        self.traced = engine.traced_views(settings)
        self._topic = find_workload(settings.workload).positions
        self._positions = Positions(self.traced, settings.events_partitions)
        self._queue = SimpleQueue[Seen]()
        self._newest_ms = 0

    def take(self, seen: Seen) -> None:
        """Take the value of a traced view. Another thread may call this."""
        self._queue.put(seen)

    def counts(self) -> list[int]:
        """Return the engine's position in each partition."""
        return [event.position for event in self._positions.reached]

    def updates(self, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield every update until `stop` is set, with those of the values taken by then. More may
        come: other threads go on, and a saturated engine has rows to write for minutes.

        Raises:
            RacetrackError: the engine has failed, or the broker refused.
        """
        watch = self._engine.watch(self._stack)
        with closing(_consumer(self._stack.endpoints.kafka, self._topic)) as consumer:
            while True:
                is_last = stop.is_set()
                summary = None
                for update in self._look(consumer):
                    # One summary for all partitions that changed at the same time.
                    if summary and summary.timestamp_ms != update.timestamp_ms:
                        yield summary
                    summary = self._positions.summary(update.timestamp_ms)
                    yield update
                if summary:
                    yield summary
                if is_last:
                    return
                if not summary:
                    watch()

    def _look(self, consumer: "Consumer") -> Iterator[Progress]:
        """Yield the progress since the last call, in the order of time."""
        for message in consumer.consume(MESSAGES_AT_ONCE, LOOK_S):
            if error := message.error():
                if not is_retriable(error):
                    where = self._stack.endpoints.kafka
                    raise RacetrackError(f"Reading from Kafka at {where} failed: {error}")
                continue
            row = json.loads(message.value() or b"")
            event = Tracer(row["number"], row["position"], row["due_ms"])
            self._positions.add(row["partition"], event)
        for partition in range(len(self._positions.reached)):
            yield from map(self._stamped, self._positions.progress(partition))
        try:
            while True:
                yield from map(self._stamped, self._positions.take(self._queue.get_nowait()))
        except Empty:
            return

    def _stamped(self, progress: Progress) -> Progress:
        """Return the progress with a time that is not before that of an earlier one. The position
        of a tracer event may be received after its row."""
        self._newest_ms = max(self._newest_ms, progress.timestamp_ms)
        return Progress(
            self._newest_ms, progress.partition, progress.total, progress.max_received_at_ms
        )


@contextmanager
def followed(engine: Engine, stack: Stack) -> Iterator[Callable[[], list[int]]]:
    """Follow an engine's traced views in threads, without a run folder. The function in the context
    returns the engine's position in each partition. It raises RacetrackError if the engine has
    failed, or the broker refused."""
    progress, stop = TracedProgress(engine, stack), threading.Event()

    def follow_views() -> None:
        for seen in engine.seen(stack, progress.traced, stop):
            progress.take(seen)

    def follow_progress() -> None:
        for _ in progress.updates(stop):
            pass

    with ThreadPoolExecutor(thread_name_prefix="positions") as threads:
        following = [threads.submit(follow) for follow in (follow_views, follow_progress)]

        def counts() -> list[int]:
            for ended in filter(Future.done, following):
                ended.result()
            return progress.counts()

        try:
            yield counts
        finally:
            stop.set()


def _consumer(kafka: KafkaEndpoint, topic: str) -> "Consumer":
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    # A group is required, but nothing is committed.
    own = {"group.id": "racetrack-positions", "enable.auto.commit": False}
    consumer = Consumer(kafka.librdkafka(own))
    consumer.assign([TopicPartition(kafka.topic(topic), 0, OFFSET_BEGINNING)])
    return consumer
