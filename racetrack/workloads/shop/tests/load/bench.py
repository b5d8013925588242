"""Two of the generator's workers with a fake broker, to compare what was due in each partition with
what was sent."""

from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from loadgen import counters as c
from loadgen.clock import NS_PER_MS, NS_PER_S
from loadgen.derived import MAX_WAITING, DerivedEvents, Feed
from loadgen.generator import RATE_LEAD_NS, partition_schedules
from loadgen.producer import PartitionState, Producer
from loadgen.rdkafka import Accepted
from loadgen.schedule import Schedule
from racetrack.workloads.shop.load.pageviews import Pageviews
from racetrack.workloads.shop.load.purchases import Purchases
from racetrack.workloads.shop.load.tracers import Reserved, TracerEvents
from racetrack.workloads.shop.tests.load.shop_settings import load

SETTINGS = load(SHOP_USERS="20", SHOP_ITEMS="7", EVENTS_PARTITIONS="3")
LAST_USER = Reserved.of(SETTINGS).last_user
ALL_USERS = [[user for user in range(1, LAST_USER + 1) if user % 3 == p] for p in range(3)]
USERS = [[user for user in users if user <= SETTINGS.users] for users in ALL_USERS]
PAGEVIEWS = Pageviews(SETTINGS, ALL_USERS)
SOURCES = (Purchases.name, TracerEvents.name)
START_NS = 1_700_000_000 * NS_PER_S
EVERYTHING = 10**9


def views(source: str, schedule: Schedule) -> DerivedEvents:
    """Return the pageviews that follow from purchases, or from tracer events."""
    return DerivedEvents(schedule, partial(PAGEVIEWS.derived, source), SOURCES.index(source))


class Sent(NamedTuple):
    """A message: a scheduled pageview as its number, or one that follows from a purchase or a
    tracer event as its content."""

    what: Any
    stamp_ms: int


class FakeRenderer:
    """A fake renderer that makes a list of messages."""

    def __init__(self) -> None:
        self.messages: list[Sent] = []

    @property
    def count(self) -> int:
        return len(self.messages)

    def clear(self) -> None:
        self.messages = []

    def events(self, _share: Any, first: int, count: int, stamp_ms: int) -> None:
        self.messages += [Sent(n, stamp_ms) for n in range(first, first + count)]

    def one(self, event: Any, stamp_ms: int) -> None:
        self.messages.append(Sent(event, stamp_ms))


class Broker:
    """A fake broker that accepts as many messages as it has capacity for."""

    def __init__(self) -> None:
        self.topic: list[list[Sent]] = [[] for _ in USERS]
        self.capacity = EVERYTHING

    def produce(self, _topic: Any, partition: int, messages: list[Sent], count: int) -> Accepted:
        taken = min(count, self.capacity)
        self.capacity -= taken
        self.topic[partition] += messages[:taken]
        return Accepted(taken, 0, "")


def producer_to(broker: Broker, counters: c.Counters, now: Any, **more: Any) -> Producer:
    """Return a worker's producer whose clock shows `now.ns`."""
    return Producer(
        number=0,
        clock=SimpleNamespace(now_ns=lambda: now.ns),  # type: ignore[arg-type]
        counters=counters,
        client=broker,  # type: ignore[arg-type]
        topic=None,
        renderer=FakeRenderer(),  # type: ignore[arg-type]
        give_up_ms=1_000_000,
        log=print,
        **more,
    )


class FakeWorker:
    """A worker's partitions, its queue of pageviews that follow from other events, and its
    producer."""

    def __init__(
        self, broker: Broker, counters: c.Counters, now: Any, max_waiting: int = MAX_WAITING
    ) -> None:
        self.states: dict[int, PartitionState] = {}
        every = [views(source, Schedule.starting(START_NS, 0, 1)) for source in SOURCES]
        self.feed = Feed(every, max_waiting)
        self._counters, self._now = counters, now
        self._producer = producer_to(broker, counters, now)

    def join(self, partition: int, pageviews: Schedule, derived: list[Schedule]) -> None:
        word, base = self._counters.word, self._counters.partition(partition)
        position = word[base + c.POSITION]
        next_derived = [word[base + c.NEXT_DERIVED + kind] for kind in range(len(derived))]
        state = PartitionState(partition, copy(pageviews), None, position, next_derived)
        self.feed.join(state, self.states, list(map(copy, derived)), self._now.ns)
        self.states[partition] = state

    def turn(self) -> None:
        until_ns = self.feed.give(self.states, self._now.ns)
        for state in self.states.values():
            self._producer.turn(state, self._now.ns, until_ns)
            state.schedule.forget(state.position)
        self.feed.forget()


class Bench:
    """Two workers that share the partitions, and the schedules that the control process keeps."""

    def __init__(self, counters: c.Counters, max_waiting: int = MAX_WAITING) -> None:
        self.counters = counters
        for number in range(words()):
            counters.word[number] = 0
        self.now = SimpleNamespace(ns=START_NS)
        self.broker = Broker()
        self.pageviews = partition_schedules(START_NS, [len(users) for users in USERS])
        self.derived = [Schedule.starting(START_NS, 0, 1000 * NS_PER_S) for _ in SOURCES]
        # Copies that keep the whole history of rates, because the workers' schedules forget the
        # past.
        self.true_pageviews = [copy(schedule) for schedule in self.pageviews]
        self.true_derived = list(map(copy, self.derived))
        self.workers = [FakeWorker(self.broker, counters, self.now, max_waiting) for _ in range(2)]
        for partition in range(len(USERS)):
            self._join(partition, 0)

    def _join(self, partition: int, worker: int) -> None:
        self.workers[worker].join(partition, self.pageviews[partition], self.derived)

    def go_on(self, ms: int) -> None:
        """Let time pass, and then give both workers a turn."""
        self.now.ns += ms * NS_PER_MS + 123
        for worker in self.workers:
            worker.turn()
        for schedule, position in zip(
            self.pageviews, self.counters.column(c.POSITION), strict=True
        ):
            schedule.forget(position)
        for kind, derived in enumerate(self.derived):
            derived.forget(min(self.counters.column(c.NEXT_DERIVED + kind)))

    def pageview_rate(self, per_s: int, late_ms: int = 0) -> None:
        at_ns = self.now.ns + RATE_LEAD_NS
        for p, users in enumerate(USERS):
            for schedule in (self.pageviews[p], self.true_pageviews[p]):
                schedule.change(at_ns, per_s * 1000 * len(users))
        self._pass(late_ms)
        for worker in self.workers:
            for p, state in worker.states.items():
                state.schedule.change(at_ns, per_s * 1000 * len(USERS[p]))

    def purchase_rate(self, per_s: int, late_ms: int = 0) -> None:
        self._derived_rate(0, per_s, late_ms)

    def mark_rate(self, per_s: int, late_ms: int = 0) -> None:
        self._derived_rate(1, per_s, late_ms)

    def _derived_rate(self, kind: int, per_s: int, late_ms: int) -> None:
        at_ns = self.now.ns + RATE_LEAD_NS
        for schedule in (self.derived[kind], self.true_derived[kind]):
            schedule.change(at_ns, per_s * 1000)
        self._pass(late_ms)
        for worker in self.workers:
            worker.feed.change(kind, at_ns, per_s * 1000)

    def _pass(self, late_ms: int) -> None:
        for _ in range(late_ms // 5):
            self.now.ns += 5 * NS_PER_MS
            for worker in self.workers:
                worker.turn()

    def move(self, partition: int) -> None:
        """Move a partition to the other worker, as when its worker releases it."""
        for number, worker in enumerate(self.workers):
            if worker.states.pop(partition, None):
                self._join(partition, 1 - number)
                return

    def die(self, number: int) -> None:
        """End a worker between two turns; the other one takes over."""
        states = list(self.workers[number].states)
        self.workers[number] = FakeWorker(self.broker, self.counters, self.now)
        for partition in states:
            self._join(partition, 1 - number)

    def broker_takes(self, messages: int) -> None:
        self.broker.capacity = messages

    def finish(self) -> None:
        """Stop the load, and send all that is due."""
        self.broker.capacity = EVERYTHING
        self.pageview_rate(0)
        self.purchase_rate(0)
        self.mark_rate(0)
        for _ in range(40):
            self.go_on(20)

    def due(self, partition: int) -> list[tuple[int, Any]]:
        """Return (due time, content) of all pageviews of a partition that were due, in order. At
        equal times, those of purchases come first, then those of tracer events."""
        true, end_ns = self.true_pageviews[partition], self.now.ns
        found: list[tuple[int, int, Any]] = [
            (true.due_at(n + 1), len(SOURCES), n) for n in range(true.due_by(end_ns))
        ]
        for source, schedule in zip(SOURCES, self.true_derived, strict=True):
            every = views(source, schedule).take(end_ns, EVERYTHING)
            found += [(v.due_ns, v.kind, v.content) for v in every if v.partition == partition]
        return [(at_ns, what) for at_ns, _, what in sorted(found, key=lambda each: each[:2])]


def copy(schedule: Schedule) -> Schedule:
    return Schedule(schedule.denominator, schedule.segments)


def words() -> int:
    return c.words(len(USERS), 2)
