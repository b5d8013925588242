"""Worker process: the only producer of its partitions.

About every millisecond it computes which events are due in each partition and hands them to
librdkafka. It receives orders from the generator's main process and sends reports, both JSON
packets, and counts in shared memory. It exits when the main process has ended."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from typing import Any

from loadgen import config as settings
from loadgen import counters as c
from loadgen.clock import NS_PER_MS, Clock
from loadgen.control_link import ControlLink
from loadgen.derived import Feed, all_derived
from loadgen.positions import Positions
from loadgen.producer import BATCH, PartitionState, Producer
from loadgen.rdkafka import Client, KafkaError, Library, producer_settings
from loadgen.schedule import Schedule
from loadgen.workload import Workload
from loadgen.workload import make as make_workload

# A wake-up takes about 20 us: 2 % of a core if it happens every 1 ms. Shorter sleeps are
# inaccurate.
MIN_SLEEP_NS = 1 * NS_PER_MS
# Maximum delay until an order or a new rate is noticed when nothing is due.
MAX_SLEEP_NS = 5 * NS_PER_MS
# A flush runs in slices of this length, with production between them.
FLUSH_SLICE_MS = 10
RELEASE_WITHIN_S = 1.0
NOTE_EVERY_NS = 100 * NS_PER_MS
PURGE_WITHIN_S = 0.5
LOG_ERRORS_EVERY_S = 5.0
# The broker counts as back after this long without errors, which is longer than the interval
# between connection attempts.
QUIET_S = 3.0
# JSON form of a schedule: an object with "denominator" and "segments".
Form = dict[str, Any]


class Worker:
    """Produces due events of its partitions, and executes orders of the main process."""

    def __init__(
        self,
        config: settings.Config,
        workload: Workload,
        number: int,
        clock: Clock,
        counters: c.Counters,
        control: ControlLink,
    ) -> None:
        self._number, self._clock, self._counters = number, clock, counters
        self._topic = workload.topic
        library = Library(config.librdkafka)
        self._events = workload.events(library)
        self._renderer = self._events.renderer(BATCH)
        self._client = Client(library, producer_settings(config), config.topic_prefix)
        self._main = self._client.topic(self._topic)
        self._positions = (
            Positions(self._client, workload.positions, library.ffi) if workload.positions else None
        )
        self._producer = Producer(
            number=number,
            clock=clock,
            counters=counters,
            client=self._client,
            topic=self._main,
            renderer=self._renderer,
            give_up_ms=config.give_up_ms,
            log=control.log,
            on_derived=self._positions.note if self._positions else None,
        )
        self._states: dict[int, PartitionState] = {}
        # The schedules of derived events arrive with each partition.
        self._feed = Feed(all_derived(workload, self._events, clock.now_ns()))
        self._control = control
        # Pending flushes: (token, deadline in monotonic seconds).
        self._flushes: list[tuple[str, float]] = []
        self._leave_by_s = float("inf")
        self._noted_ns = 0
        self._errors_logged_s = float("-inf")
        self._errors_seen_s = 0.0
        self._errors_unlogged = 0

    def run(self) -> int:
        """Run until a stop order, or until the main process has ended; return the number of
        messages left in the queue."""
        self._warm_up()
        self._control.report(event="ready")
        while True:
            # Read the clock before the orders, so that all rates that apply by now are known.
            now_ns = self._clock.now_ns()
            if not self._take_orders() or self._may_leave():
                break
            self._turn(now_ns)
            self._settle()
            self._rest()
        left = 0 if self._client.flush(FLUSH_SLICE_MS) else self._client.queued()
        if left:
            self._purge()
        self._settle()
        self._note(self._clock.now_ns())
        return left

    def _turn(self, now_ns: int) -> None:
        """Hand over events that are due."""
        until_ns = self._feed.give(self._states, now_ns)
        for state in self._states.values():
            if not state.released:
                self._producer.turn(state, now_ns, until_ns)
        if self._positions:
            self._positions.send()

    def _purge(self) -> None:
        """Drop unsent messages and count them as refused, so that HANDED counts sent ones only."""
        self._client.purge()
        deadline_s = time.monotonic() + PURGE_WITHIN_S
        while self._client.queued() and time.monotonic() < deadline_s:
            self._count_failed()
            time.sleep(0.001)

    def _warm_up(self) -> None:
        """Connect, and let PyPy compile the renderer, before anything is due."""
        weights = self._events.weights
        share = self._renderer.share(max(range(len(weights)), key=weights.__getitem__))
        for _ in range(30):
            self._renderer.clear()
            self._renderer.events(share, 0, BATCH, self._clock.now_ns() // NS_PER_MS)
        try:
            self._client.partition_count(self._topic, 2_000)
        except KafkaError as error:
            # This worker was restarted while the broker is down. librdkafka queues messages until
            # the broker returns.
            self._control.log(f"Kafka does not answer yet: {error}")

    def _may_leave(self) -> bool:
        if self._leave_by_s == float("inf"):
            return False
        return self._client.queued() == 0 or time.monotonic() > self._leave_by_s

    def _settle(self) -> None:
        """Finish a round of production: count failures, send reports, continue flushes."""
        self._count_failed()
        self._control.send()
        if self._flushes:
            self._go_on_flushing()
        # Update this counter in every round: if the worker is killed, nothing else shows how many
        # messages were lost.
        queued = self._counters.worker(self._number) + c.QUEUED
        self._counters.word[queued] = self._client.queued()
        now_ns = self._clock.now_ns()
        if now_ns - self._noted_ns >= NOTE_EVERY_NS:
            self._note(now_ns)

    def _count_failed(self) -> None:
        """Count accepted messages that librdkafka could not deliver as refused."""
        failed, errors = self._client.poll(self._main)
        for partition in failed:
            base = self._counters.partition(partition)
            self._counters.word[base + c.HANDED] -= 1
            self._counters.word[base + c.REFUSED] += 1
        if errors:
            self._log_errors(errors)

    def _log_errors(self, errors: list[str]) -> None:
        """Log at most one error per LOG_ERRORS_EVERY_S: librdkafka retries many times a second."""
        self._errors_unlogged += len(errors)
        self._errors_seen_s = time.monotonic()
        if time.monotonic() > self._errors_logged_s + LOG_ERRORS_EVERY_S:
            more = self._errors_unlogged - 1
            self._control.log(
                f"Kafka: {errors[0]}" + (f" (and {more} more errors)" if more else "")
            )
            self._errors_logged_s, self._errors_unlogged = time.monotonic(), 0

    def _note(self, now_ns: int) -> None:
        """Record CPU time, and let schedules forget settled events."""
        self._noted_ns = now_ns
        base = self._counters.worker(self._number)
        self._counters.word[base + c.CPU_NS] = time.process_time_ns()
        for state in self._states.values():
            state.schedule.forget(state.position)
        self._feed.forget()
        if self._errors_seen_s and time.monotonic() > self._errors_seen_s + QUIET_S:
            self._control.log(
                f"Kafka: no more errors; {self._client.queued()} messages wait in the queue"
            )
            self._errors_seen_s = 0.0

    def _go_on_flushing(self) -> None:
        done = self._client.flush(FLUSH_SLICE_MS)
        unfinished = []
        for token, deadline_s in self._flushes:
            if done or time.monotonic() > deadline_s:
                self._flushed(token, 0 if done else self._client.queued())
            else:
                unfinished.append((token, deadline_s))
        self._flushes = unfinished

    def _flushed(self, token: str, left: int) -> None:
        """Report a completed flush. If the flush was for the release of a partition (token
        "release/3"), give up the partition, or keep it if messages are still queued."""
        if not token.startswith("release/"):
            self._control.report(event="flushed", token=token, left=left)
            return
        partition = int(token[len("release/") :])
        state = self._states.get(partition)
        if state is None:
            return  # stopped in the meantime
        state.released = False
        if left == 0:
            del self._states[partition]
        self._control.report(event="released" if left == 0 else "kept", partition=partition)

    def _rest(self) -> None:
        """Sleep until an event can be due, between MIN_SLEEP_NS and MAX_SLEEP_NS.

        Do not sleep if events are overdue, unless librdkafka's queue is full.
        """
        now_ns = self._clock.now_ns()
        wake_ns = now_ns + MAX_SLEEP_NS
        next_derived_ns = self._feed.next_due_ns()
        if self._states and next_derived_ns is not None and next_derived_ns < wake_ns:
            wake_ns = next_derived_ns
        full = False
        for state in self._states.values():
            full = full or state.full_since_ns != 0
            next_ns = None if state.released else state.schedule.when(state.position + 1)
            if next_ns is not None and next_ns < wake_ns:
                wake_ns = next_ns
        if full or wake_ns > now_ns - MIN_SLEEP_NS:
            time.sleep(max(wake_ns - now_ns, MIN_SLEEP_NS) / 1e9)

    def _take_orders(self) -> bool:
        """Execute pending orders; return False if the main process has ended."""
        try:
            while (order := self._control.order()) is not None:
                getattr(self, "_do_" + order.pop("do"))(**order)
        except ConnectionError:
            return False
        return True

    def _do_assign(self, partition: int, events: Form, derived: list[Form]) -> None:
        word, base = self._counters.word, self._counters.partition(partition)
        schedule, share = _schedule(events), self._renderer.share(partition)
        self._renderer.follow(share, schedule)
        state = PartitionState(
            partition,
            schedule,
            share,
            position=word[base + c.POSITION],
            next_derived=[word[base + c.NEXT_DERIVED + kind] for kind in range(len(derived))],
        )
        schedules = [_schedule(form) for form in derived]
        self._feed.join(state, self._states, schedules, self._clock.now_ns())
        self._states[partition] = state

    def _do_release(self, partition: int) -> None:
        self._states[partition].released = True
        self._flushes.append((f"release/{partition}", time.monotonic() + RELEASE_WITHIN_S))

    def _do_rate(self, at_ns: int, milli: int) -> None:
        for partition, state in self._states.items():
            state.schedule.change(at_ns, milli * self._events.weights[partition])

    def _do_derived_rate(self, kind: int, at_ns: int, milli: int) -> None:
        self._feed.change(kind, at_ns, milli)

    def _do_flush(self, token: str, within_s: float) -> None:
        self._flushes.append((token, time.monotonic() + within_s))

    def _do_stop(self, within_s: float) -> None:
        """Hand over events that are due, then only flush."""
        self._turn(self._clock.now_ns())
        self._states.clear()
        self._leave_by_s = time.monotonic() + within_s
        self._flushes.append(("stop", self._leave_by_s))


def _schedule(form: Form) -> Schedule:
    return Schedule(form["denominator"], [tuple(segment) for segment in form["segments"]])


def main(argv: list[str]) -> int:
    """Run `python -m loadgen.worker CONTROL_FD COUNTERS_FD NUMBER WORKERS CLOCK_OFFSET_NS`, in the
    generator's environment; return 0, or 3 if messages were left in the queue."""
    control_fd, counters_fd, number, workers, offset_ns = map(int, argv)
    # Ctrl-C reaches the whole process group; the main process stops the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    config = settings.load()
    workload = make_workload(config, settings.Reader(os.environ))
    link = ControlLink(socket.socket(fileno=control_fd))
    counters = c.Counters(counters_fd, config.partitions, workers)
    left = Worker(config, workload, number, Clock(offset_ns), counters, link).run()
    return 0 if left == 0 else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
