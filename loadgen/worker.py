"""A worker process: the only producer of the partitions it is given. Started by the control
process, which it outlives by nothing.

It wakes every millisecond or so, asks each partition's schedule how many are due, and hands them
over. It talks with the control process over a socket in packets of JSON (orders in, answers out)
and counts in shared memory.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections import deque
from typing import Any

from loadgen import config as settings
from loadgen import counters as c
from loadgen.clock import NS_PER_MS, Clock
from loadgen.rdkafka import Client, KafkaError, Library, producer_settings
from loadgen.render import Renderer
from loadgen.schedule import Schedule
from loadgen.sequence import Stream

# Waking up costs about 20 us: 2 % of a core at 1 ms, and below 1 ms time.sleep is no longer
# punctual.
MIN_SLEEP_NS = 1 * NS_PER_MS
# How late an order or a new rate may be noticed when nothing is due.
MAX_SLEEP_NS = 5 * NS_PER_MS
# 1,000 messages are 100 kB: they stay in the processor's cache between rendering and librdkafka's
# copy.
BATCH = 1000
# One partition's share of a turn, so that none starves behind a partition that has much to catch up
# on.
BATCHES_PER_TURN = 8
# A flush goes on in slices of this length, with production between them.
FLUSH_SLICE_MS = 10
RELEASE_WITHIN_S = 1.0
CPU_EVERY_NS = 100 * NS_PER_MS
MAX_OUTBOX = 100


class Lane:
    """A partition in this worker's hands: its schedule, its events, and how far it has come."""

    def __init__(
        self, partition: int, schedule: Schedule, stream: Stream, users: Any, user_count: int
    ) -> None:
        self.partition = partition
        self.schedule = schedule
        self.stream = stream
        self.users = users
        self.user_count = user_count
        self.position = 0
        # Pageviews of purchases: (user, page, due_ns), in the order in which they were ordered.
        self.views: deque[tuple[int, int, int]] = deque()
        self.full_since_ns = 0
        self.released = False


class Worker:
    """Produces what is due in its lanes."""

    def __init__(
        self,
        config: settings.Config,
        slot: int,
        clock: Clock,
        counters: c.Counters,
        control: socket.socket,
    ) -> None:
        self._config, self._slot, self._clock, self._counters = config, slot, clock, counters
        library = Library(config.librdkafka)
        self._users = library.partition_users(config.users, config.partitions)
        self._renderer = Renderer(library.ffi, config.items, config.users, BATCH)
        self._client = Client(library, producer_settings(config))
        self._topic = self._client.topic(config.topic)
        self._lanes: dict[int, Lane] = {}
        self._control = control
        self._outbox: deque[bytes] = deque()
        self._flushes: list[tuple[str, float]] = []
        self._leaving_by_s: float | None = None
        self._cpu_at_ns = 0

    def run(self) -> int:
        """Work until told to stop or the control process is gone.

        Returns the number of messages left behind in the queue.
        """
        self._warm_up()
        self._say(say="ready")
        while self._take_orders():
            now_ns = self._clock.now_ns()
            for lane in self._lanes.values():
                if not lane.released:
                    self._turn(lane, now_ns)
            self._settle()
            if self._leaving_by_s is not None and (
                self._client.queued() == 0 or time.monotonic() > self._leaving_by_s
            ):
                break
            self._rest()
        left = 0 if self._client.flush(1) else self._client.queued()
        self._settle()
        return left

    def _warm_up(self) -> None:
        """Let PyPy compile the renderer before anything is due: half a second of lateness
        otherwise, on a slow machine.
        """
        users = self._renderer.users_array([1])
        stream = Stream(0, "warm-up")
        for _ in range(30):
            self._renderer.clear()
            self._renderer.pageviews(stream, 0, BATCH, users, self._clock.now_ns() // NS_PER_MS)
        try:
            self._client.partition_count(self._config.topic, 2_000)
        except KafkaError as error:
            # A worker that is restarted while the broker is away: librdkafka queues until it is
            # back.
            self._say(say="log", text=f"Kafka does not answer yet: {error}")

    def _turn(self, lane: Lane, now_ns: int) -> None:
        """Hand over what is due in a lane."""
        while lane.views and self._views(lane):
            pass
        due = lane.schedule.due_by(now_ns)
        for _ in range(BATCHES_PER_TURN):
            if lane.position >= due or not self._batch(lane, due):
                break
        if lane.full_since_ns and now_ns - lane.full_since_ns > self._config.give_up_ms * NS_PER_MS:
            self._give_up(lane, now_ns - self._config.give_up_ms * NS_PER_MS)

    def _batch(self, lane: Lane, due: int) -> bool:
        """Hand over up to BATCH scheduled pageviews; whether all of them were settled."""
        renderer, schedule = self._renderer, lane.schedule
        renderer.clear()
        groups: list[tuple[int, int]] = []
        position = lane.position
        while position < due and renderer.count < BATCH:
            first_ns = schedule.when(position + 1)
            assert first_ns is not None  # it is due
            stamp_ms = first_ns // NS_PER_MS
            same_stamp = min(due, schedule.due_by((stamp_ms + 1) * NS_PER_MS - 1)) - position
            count = min(
                max(same_stamp, 1), BATCH - renderer.count, (1 << 32) - (position & 0xFFFFFFFF)
            )
            renderer.pageviews(lane.stream, position, count, lane.users, stamp_ms)
            groups.append((count, first_ns))
            position += count
        used = self._hand_over(lane, groups)
        lane.position += used
        self._counters.word[self._counters.partition(lane.partition) + c.POSITION] = lane.position
        return used == renderer.count

    def _views(self, lane: Lane) -> bool:
        """Hand over up to BATCH pageviews of purchases; whether all of them were settled."""
        renderer = self._renderer
        renderer.clear()
        groups: list[tuple[int, int]] = []
        for i in range(min(len(lane.views), BATCH)):
            user, page, due_ns = lane.views[i]
            renderer.one(user, page, due_ns // NS_PER_MS)
            groups.append((1, due_ns))
        used = self._hand_over(lane, groups)
        for _ in range(used):
            lane.views.popleft()
        self._counters.word[self._counters.partition(lane.partition) + c.VIEWS] += used
        return used == renderer.count

    def _hand_over(self, lane: Lane, groups: list[tuple[int, int]]) -> int:
        """Give the rendered batch to librdkafka and count it; how many are settled (accepted or
        refused for good).
        """
        count = self._renderer.count
        result = self._client.produce(self._topic, lane.partition, self._renderer.messages, count)
        now_ns = self._clock.now_ns()
        base = self._counters.partition(lane.partition)
        self._counters.word[base + c.HANDED] += result.taken
        if result.rejected:
            self._counters.word[base + c.REFUSED] += result.rejected
            self._say(
                say="log", text=f"librdkafka refused {result.rejected} pageviews: {result.why}"
            )
        left = result.used
        for size, due_ns in groups:
            if left <= 0:
                break
            self._counters.late(self._slot, (now_ns - due_ns) // 1000, min(size, left))
            left -= size
        if result.used == count:
            lane.full_since_ns = 0
        elif result.used or not lane.full_since_ns:
            lane.full_since_ns = now_ns
        return result.used

    def _give_up(self, lane: Lane, until_ns: int) -> None:
        """The queue has been full for long: refuse what was due by `until_ns`, so that waiting
        stays bounded.
        """
        base = self._counters.partition(lane.partition)
        position = max(lane.position, lane.schedule.due_by(until_ns))
        refused = position - lane.position
        lane.position = position
        self._counters.word[base + c.POSITION] = position
        while lane.views and lane.views[0][2] <= until_ns:
            lane.views.popleft()
            self._counters.word[base + c.VIEWS] += 1
            refused += 1
        self._counters.word[base + c.REFUSED] += refused

    def _settle(self) -> None:
        """Collect what librdkafka reports, go on with flushes and releases, and note queue length
        and CPU time.
        """
        failed, errors = self._client.poll()
        for partition in failed:
            base = self._counters.partition(partition)
            self._counters.word[base + c.HANDED] -= 1
            self._counters.word[base + c.REFUSED] += 1
        for error in errors:
            self._say(say="log", text=f"Kafka: {error}")
        if self._outbox:
            self._send_outbox()
        if self._flushes:
            self._go_on_flushing()
        now_ns = self._clock.now_ns()
        if now_ns - self._cpu_at_ns >= CPU_EVERY_NS:
            self._cpu_at_ns = now_ns
            self._counters.word[self._counters.worker(self._slot) + c.QUEUED] = (
                self._client.queued()
            )
            self._counters.word[self._counters.worker(self._slot) + c.CPU_NS] = (
                time.process_time_ns()
            )
            for lane in self._lanes.values():
                lane.schedule.forget(lane.position)

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
        """Answer a flush; for one that belongs to a release ("release/3") hand the partition back,
        or keep it.
        """
        if not token.startswith("release/"):
            self._say(say="flushed", token=token, left=left)
            return
        partition = int(token[len("release/") :])
        lane = self._lanes[partition]
        lane.released = False
        if left == 0:
            del self._lanes[partition]
        self._say(say="released" if left == 0 else "kept", partition=partition)

    def _rest(self) -> None:
        """Sleep until something can be due, within the bounds above."""
        now_ns = self._clock.now_ns()
        wake_ns = now_ns + MAX_SLEEP_NS
        for lane in self._lanes.values():
            if lane.released:
                continue
            next_ns = lane.schedule.when(lane.position + 1)
            if next_ns is not None and next_ns < wake_ns:
                wake_ns = next_ns
        behind = wake_ns < now_ns - MIN_SLEEP_NS and not any(
            lane.full_since_ns for lane in self._lanes.values()
        )
        if not behind:
            time.sleep(max(wake_ns - now_ns, MIN_SLEEP_NS) / 1e9)

    def _take_orders(self) -> bool:
        """Carry out what the control process has said; False once it has closed its end. A packet
        is an order.
        """
        while True:
            try:
                packet = self._control.recv(1 << 18)
            except BlockingIOError:
                return True
            except ConnectionError:
                return False
            if not packet:
                return False
            order = json.loads(packet)
            getattr(self, "_do_" + order.pop("do"))(**order)

    def _do_assign(self, partition: int, denominator: int, segments: list[Any]) -> None:
        stream = Stream(self._config.seed, f"pageviews/{partition}")
        users = self._users[partition]
        lane = Lane(
            partition,
            Schedule(denominator, [tuple(s) for s in segments]),
            stream,
            self._renderer.users_array(users),
            len(users),
        )
        lane.position = self._counters.word[self._counters.partition(partition) + c.POSITION]
        self._lanes[partition] = lane

    def _do_release(self, partition: int) -> None:
        self._lanes[partition].released = True
        self._flushes.append((f"release/{partition}", time.monotonic() + RELEASE_WITHIN_S))

    def _do_rate(self, at_ns: int, milli: int) -> None:
        for lane in self._lanes.values():
            lane.schedule.change(at_ns, milli * lane.user_count)

    def _do_view(self, partition: int, user: int, page: int, due_ns: int) -> None:
        self._lanes[partition].views.append((user, page, due_ns))

    def _do_flush(self, token: str, within_s: float) -> None:
        self._flushes.append((token, time.monotonic() + within_s))

    def _do_stop(self, within_s: float) -> None:
        self._lanes.clear()
        self._leaving_by_s = time.monotonic() + within_s
        self._flushes.append(("stop", self._leaving_by_s))

    def _say(self, **message: Any) -> None:
        """Tell the control process.

        If it hangs and its socket is full, log lines are dropped beyond a bound, answers are not.
        """
        if message["say"] != "log" or len(self._outbox) < MAX_OUTBOX:
            self._outbox.append(json.dumps(message).encode())
        self._send_outbox()

    def _send_outbox(self) -> None:
        try:
            while self._outbox:
                self._control.send(self._outbox[0])
                self._outbox.popleft()
        except BlockingIOError:
            return  # tried again at every settling
        except ConnectionError:
            self._outbox.clear()  # the control process is gone; the next look for orders ends this worker


def main(argv: list[str]) -> int:
    """`worker.py CONTROL_FD COUNTERS_FD SLOT SLOTS CLOCK_OFFSET_NS`, with the generator's
    environment.
    """
    control_fd, counters_fd, slot, slots, offset_ns = map(int, argv)
    # Ctrl-C reaches the whole process group; the control process decides when a worker stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    config = settings.load()
    control = socket.socket(fileno=control_fd)
    control.setblocking(False)
    counters = c.Counters(counters_fd, config.partitions, slots)
    left = Worker(config, slot, Clock(offset_ns), counters, control).run()
    return 0 if left == 0 else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
