"""The worker processes, seen from the control process: who owns which partition, hand-overs, deaths
and restarts.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any, Callable

from loadgen import counters as c
from loadgen.clock import Clock
from loadgen.config import Config
from loadgen.schedule import Schedule

# One worker flat out does well over twice this on the machine it was measured on
# (bench/loadgen.sh); half of what it can do leaves it idle time in every millisecond, which is what
# keeps lateness low.
PAGEVIEWS_PER_WORKER_PER_S = 500_000
# A worker that lived this long died of something new: it is restarted at once. One that did not
# waits longer each time.
STEADY_S = 10.0
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
RETRY_RELEASE_S = 1.0
STOP_FLUSH_S = 3.0
STOP_KILL_S = 4.0
# A view on its way: (user, page, due_ns).
View = tuple[int, int, int]


def workers_for(milli_per_s: int, at_most: int) -> int:
    """How many workers a rate needs."""
    return max(1, min(at_most, -(-milli_per_s // (PAGEVIEWS_PER_WORKER_PER_S * 1000))))


class Slot:
    """A place for one worker process, and the one that has it now."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.channel: socket.socket | None = None
        self.ready = False
        self.leaving = False
        self.started_s = 0.0
        self.backoff_s = 0.0
        self.not_before_s = 0.0
        self.outbox: deque[bytes] = deque()

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Crew:
    """Keeps as many workers as the rate needs, each partition in exactly one hand.

    `poll` must be called every few milliseconds; it never blocks. A partition changes hands only
    when its old worker has flushed it, so there is one producer a partition and order holds; until
    then it gets late, and that is counted.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        selector: selectors.BaseSelector,
        schedules: list[Schedule],
        log: Callable[[str], None],
    ) -> None:
        self._config, self._clock, self._selector, self._log = config, clock, selector, log
        self._schedules = schedules
        self._slots = [Slot(n) for n in range(min(config.max_workers, config.partitions))]
        self._fd = c.create_fd(config.partitions, len(self._slots))
        self.counters = c.Counters(self._fd, config.partitions, len(self._slots))
        self._wanted = 1
        self._owner: list[int | None] = [None] * config.partitions
        self._releasing: dict[
            int, float
        ] = {}  # partition -> do not ask again before (monotonic seconds)
        self._views: list[deque[View]] = [deque() for _ in range(config.partitions)]
        self._views_settled = [0] * config.partitions
        self.views_ordered = [0] * config.partitions
        self.views_refused = [0] * config.partitions
        self._flushes: dict[str, tuple[dict[int, int], Callable[[int | None], None]]] = {}
        self._stopping = False

    def want(self, milli_per_s: int) -> None:
        """Aim at as many workers as this rate needs; `poll` does the rest."""
        self._wanted = workers_for(milli_per_s, len(self._slots))

    def change_rate(self, at_ns: int, milli_per_s: int) -> None:
        """Tell every worker of a rate that holds from `at_ns` on.

        The schedules here must have been changed already.
        """
        for slot in self._slots:
            if slot.ready and not slot.leaving:
                self._send(slot, do="rate", at_ns=at_ns, milli=milli_per_s)

    def view(self, partition: int, user: int, page: int, due_ns: int) -> None:
        """Have a purchase's pageview produced by the partition's owner, now or when it has one."""
        self.views_ordered[partition] += 1
        waiting = self._views[partition]
        if len(waiting) >= self._config.purchase_backlog:
            self.views_refused[partition] += 1
            return
        waiting.append((user, page, due_ns))
        owner = self._owner[partition]
        if owner is not None and partition not in self._releasing:
            self._send(
                self._slots[owner],
                do="view",
                partition=partition,
                user=user,
                page=page,
                due_ns=due_ns,
            )

    def poll(self) -> None:
        """Notice deaths, start what is missing, move partitions to where they belong."""
        self._forget_settled()
        for slot in self._slots:
            if slot.process is not None and not slot.alive:
                self._bury(slot)
            if slot.outbox:
                self._flush_outbox(slot)
        if not self._stopping:
            self._start_missing()
            self._place_partitions()
            self._send_home()

    def _forget_settled(self) -> None:
        for partition, settled in enumerate(self.counters.column(c.VIEWS)):
            waiting = self._views[partition]
            while self._views_settled[partition] < settled:
                waiting.popleft()
                self._views_settled[partition] += 1

    def _start_missing(self) -> None:
        for slot in self._slots[: self._wanted]:
            if slot.process is None and time.monotonic() >= slot.not_before_s:
                self._start(slot)

    def _start(self, slot: Slot) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        arguments = [
            theirs.fileno(),
            self._fd,
            slot.number,
            len(self._slots),
            self._clock.offset_ns,
        ]
        parent = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, [parent, os.environ.get("PYTHONPATH", "")]))
        slot.process = subprocess.Popen(
            [sys.executable, "-m", "loadgen.worker", *map(str, arguments)],
            pass_fds=(theirs.fileno(), self._fd),
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        slot.channel, slot.ready, slot.leaving, slot.started_s = (
            ours,
            False,
            False,
            time.monotonic(),
        )
        self._selector.register(ours, selectors.EVENT_READ, lambda _mask: self._hear(slot))

    def _place_partitions(self) -> None:
        now_s = time.monotonic()
        for partition, owner in enumerate(self._owner):
            target = self._slots[partition % self._wanted]
            if not target.ready or target.leaving or owner == target.number:
                continue
            if owner is None:
                self._assign(partition, target)
            elif self._releasing.get(partition, 0.0) <= now_s and self._slots[owner].ready:
                self._releasing[partition] = float("inf")
                self._send(self._slots[owner], do="release", partition=partition)

    def _assign(self, partition: int, slot: Slot) -> None:
        self._owner[partition] = slot.number
        schedule = self._schedules[partition]
        self._send(
            slot,
            do="assign",
            partition=partition,
            denominator=schedule.denominator,
            segments=schedule.segments,
        )
        for user, page, due_ns in self._views[partition]:
            self._send(slot, do="view", partition=partition, user=user, page=page, due_ns=due_ns)

    def _send_home(self) -> None:
        """A worker that the rate no longer needs goes, once its partitions have other owners."""
        for slot in self._slots[self._wanted :]:
            if slot.ready and not slot.leaving and slot.number not in self._owner:
                slot.leaving = True
                self._send(slot, do="stop", within_s=STOP_FLUSH_S)

    def _hear(self, slot: Slot) -> None:
        """Take what a worker says."""
        while slot.channel is not None:
            try:
                packet = slot.channel.recv(1 << 16)
            except BlockingIOError:
                return
            except ConnectionError:
                packet = b""
            if not packet:  # it has ended or is ending: poll() finds out how
                self._selector.unregister(slot.channel)
                slot.channel.close()
                slot.channel = None
                return
            message = json.loads(packet)
            getattr(self, "_on_" + message.pop("say"))(slot, **message)

    def _on_ready(self, slot: Slot) -> None:
        slot.ready = True

    def _on_log(self, slot: Slot, text: str) -> None:
        self._log(f"Worker {slot.process.pid if slot.process else '?'}: {text}")

    def _on_released(self, _slot: Slot, partition: int) -> None:
        self._releasing.pop(partition, None)
        self._owner[partition] = None

    def _on_kept(self, slot: Slot, partition: int) -> None:
        """The broker does not take what is queued, so the partition stays where it is for now."""
        self._releasing[partition] = time.monotonic() + RETRY_RELEASE_S
        self._log(
            f"Partition {partition} can't move yet: its queue does not drain. "
            f"Trying again in {RETRY_RELEASE_S:g} s."
        )

    def _on_flushed(self, slot: Slot, token: str, left: int) -> None:
        if token in self._flushes:
            waiting_for, _ = self._flushes[token]
            waiting_for[slot.number] = left
            self._finish_flush(token)

    def flush(self, token: str, within_s: float, done: Callable[[int | None], None]) -> None:
        """Flush every worker; `done(left)` is called with the number of messages that did not leave
        (None: a worker died).
        """
        busy = [slot for slot in self._slots if slot.ready and not slot.leaving]
        self._flushes[token] = ({slot.number: -1 for slot in busy}, done)
        for slot in busy:
            self._send(slot, do="flush", token=token, within_s=within_s)
        self._finish_flush(token)

    def _finish_flush(self, token: str) -> None:
        left, done = self._flushes[token]
        if all(count >= 0 for count in left.values()):
            del self._flushes[token]
            done(sum(left.values()))

    def _bury(self, slot: Slot) -> None:
        """A worker has ended: say so unless it was told to, free its partitions, and plan its
        successor.
        """
        assert slot.process is not None
        code, pid = slot.process.returncode, slot.process.pid
        if slot.channel is not None:
            self._hear(slot)
        if slot.channel is not None:
            self._selector.unregister(slot.channel)
            slot.channel.close()
            slot.channel = None
        self._report_end(slot, pid, code)
        for partition, owner in enumerate(self._owner):
            if owner == slot.number:
                self._owner[partition] = None
                self._releasing.pop(partition, None)
        slot.process, slot.ready = None, False
        slot.outbox.clear()
        for token in [t for t, (left, _) in self._flushes.items() if left.get(slot.number) == -1]:
            self._flushes.pop(token)[1](None)

    def _report_end(self, slot: Slot, pid: int, code: int) -> None:
        queued = self.counters.word[self.counters.worker(slot.number) + c.QUEUED]
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        if slot.leaving:
            if code != 0:
                self._log(
                    f"Worker {pid} ended with {how}; {queued} pageviews in its queue are lost."
                )
            return
        lived_s = time.monotonic() - slot.started_s
        slot.backoff_s = (
            0.0
            if lived_s > STEADY_S
            else min(max(slot.backoff_s * 2, FIRST_BACKOFF_S), MAX_BACKOFF_S)
        )
        slot.not_before_s = time.monotonic() + slot.backoff_s
        self._log(
            f"Worker {pid} died ({how}); up to about {queued} pageviews in its queue are lost. "
            f"Restarting it in {slot.backoff_s:.1f} s; its partitions go on from where they were."
        )

    def _send(self, slot: Slot, **order: Any) -> None:
        slot.outbox.append(json.dumps(order).encode())
        self._flush_outbox(slot)

    def _flush_outbox(self, slot: Slot) -> None:
        try:
            while slot.outbox and slot.channel is not None:
                slot.channel.send(slot.outbox[0])
                slot.outbox.popleft()
        except BlockingIOError:
            return  # a worker that hangs; poll() tries again
        except ConnectionError:
            slot.outbox.clear()  # a worker that died; poll() finds out and plans its successor

    def stop(self) -> None:
        """Tell every worker to flush and go; `gone` says when they have."""
        self._stopping = True
        for slot in self._slots:
            if slot.alive:
                slot.leaving = True
                self._send(slot, do="stop", within_s=STOP_FLUSH_S)

    def gone(self) -> bool:
        """Whether no worker is left."""
        return all(slot.process is None for slot in self._slots)

    def kill(self) -> None:
        """End what is still there after STOP_KILL_S."""
        for slot in self._slots:
            if slot.alive and slot.process is not None:
                self._log(f"Worker {slot.process.pid} does not stop; killing it.")
                slot.process.kill()
                slot.process.wait()
        self.poll()

    def describe(self) -> list[dict[str, Any]]:
        """One entry a worker, for `stats`."""
        found = []
        for slot in self._slots:
            if slot.process is None and slot.number >= self._wanted:
                continue
            base = self.counters.worker(slot.number)
            found.append(
                {
                    "pid": slot.process.pid if slot.process else 0,
                    "partitions": [
                        p for p, owner in enumerate(self._owner) if owner == slot.number
                    ],
                    "alive": slot.alive and slot.ready,
                    "cpu_s": round(self.counters.word[base + c.CPU_NS] / 1e9, 3),
                    "queued": self.counters.word[base + c.QUEUED],
                }
            )
        return found

    def handed(self) -> list[int]:
        """Pageviews that librdkafka took and has not reported as undeliverable, by partition."""
        return self.counters.column(c.HANDED)

    def refused(self) -> list[int]:
        """Pageviews given up, by partition."""
        return [a + b for a, b in zip(self.counters.column(c.REFUSED), self.views_refused)]

    def positions(self) -> list[int]:
        """How many scheduled pageviews are settled, by partition."""
        return self.counters.column(c.POSITION)

    @property
    def slots(self) -> int:
        """How many workers there can be."""
        return len(self._slots)

    def all_ready(self) -> bool:
        """Whether every partition has an owner."""
        return all(owner is not None for owner in self._owner)
