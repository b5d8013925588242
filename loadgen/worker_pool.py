"""Pool of workers: starts as many as the rate needs, assigns partitions to them, and handles their
failures."""

from __future__ import annotations

import selectors
import time
from collections.abc import Sequence
from typing import Any, Callable

from loadgen import counters as c
from loadgen.clock import Clock
from loadgen.config import Config
from loadgen.schedule import Schedule
from loadgen.worker_process import REMOTE_WORKER, WORKER, WorkerProcess

RETRY_RELEASE_S = 1.0
STOP_FLUSH_S = 3.0


def workers_for(milli_per_s: int, per_worker_per_s: int, at_most: int) -> int:
    """Return the number of workers that a rate needs."""
    return max(1, min(at_most, -(-milli_per_s // (per_worker_per_s * 1000))))


class WorkerPool:
    """Manages the workers; each partition has exactly one.

    `poll` must be called every few milliseconds and never blocks. A partition is reassigned only
    after its old worker has flushed it, so it always has a single producer, which preserves the
    order. Events that become due during a reassignment are sent late and counted as late."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        selector: selectors.BaseSelector,
        schedules: list[Schedule],
        derived: Sequence[Schedule],
        log: Callable[[str], None],
    ) -> None:
        self._config, self._clock, self._log = config, clock, log
        self._schedules, self._derived = schedules, derived
        # Programs of the workers: in this pod, and in each further pod of the generator.
        programs: list[tuple[str, ...]] = [WORKER]
        programs += [(*REMOTE_WORKER, host) for host in config.worker_hosts]
        count = min(config.max_workers * len(programs), config.partitions)
        self._workers = [
            WorkerProcess(number, selector, self._on_message, programs[number % len(programs)])
            for number in range(count)
        ]
        self._fd = c.create_fd(config.partitions, count)
        self.counters = c.Counters(self._fd, config.partitions, count)
        self._fewest = min(len(programs), count)  # at least one worker in each pod
        self._wanted = self._fewest
        self._owner: list[int | None] = [None] * config.partitions
        # Partitions that workers were asked to release, and when to ask again (monotonic seconds).
        self._releasing: dict[int, float] = {}
        self._flushes: dict[str, _Flush] = {}
        self._stopping = False

    # Requests of the generator.

    def want(self, milli_per_s: int) -> None:
        """Set the number of workers that this rate needs; `poll` starts and stops them."""
        each = self._config.events_per_worker_per_s
        self._wanted = max(self._fewest, workers_for(milli_per_s, each, len(self._workers)))

    def change_rate(self, at_ns: int, milli_per_s: int) -> None:
        """Send every worker a rate that takes effect at `at_ns`. The caller must already have
        changed this pool's schedules, because a worker that gets a partition later receives its
        schedule from there."""
        self._send_all(do="rate", at_ns=at_ns, milli=milli_per_s)

    def change_derived_rate(self, kind: int, at_ns: int, milli_per_s: int) -> None:
        """Send a rate of derived events of a kind to every worker."""
        self._send_all(do="derived_rate", kind=kind, at_ns=at_ns, milli=milli_per_s)

    def _send_all(self, **order: Any) -> None:
        for worker in self._workers:
            if worker.working:
                worker.send(**order)

    def flush(self, token: str, within_s: float, done: Callable[[int | None], None]) -> None:
        """Flush every worker. `done(left)` is called with the number of unsent messages, or None if
        a worker died."""
        working = [worker for worker in self._workers if worker.working]
        self._flushes[token] = _Flush({worker.number for worker in working}, done)
        for worker in working:
            worker.send(do="flush", token=token, within_s=within_s)
        self._finish_flush(token)

    def stop(self) -> None:
        """Send a stop order to every worker; `gone` is True when all have exited."""
        self._stopping = True
        for worker in self._workers:
            if worker.alive:
                worker.stop(STOP_FLUSH_S)

    def kill(self) -> None:
        """Kill the remaining workers."""
        for worker in self._workers:
            if worker.alive:
                self._log(f"Worker {worker.pid} does not stop; killing it.")
                worker.kill()
        self.poll()

    # State.

    @property
    def all_placed(self) -> bool:
        """True if every partition has an owner."""
        return None not in self._owner

    @property
    def gone(self) -> bool:
        """True if no worker is left."""
        return all(worker.empty for worker in self._workers)

    def handed(self) -> list[int]:
        """Return the events that librdkafka accepted and has not reported as undeliverable, by
        partition."""
        return self.counters.column(c.HANDED)

    def refused(self) -> list[int]:
        """Return the refused events, by partition."""
        return self.counters.column(c.REFUSED)

    def next_derived(self, kind: int) -> int:
        """Return the number of a kind's first derived event that may not have been sent yet."""
        return min(self.counters.column(c.NEXT_DERIVED + kind))

    def positions(self) -> list[int]:
        """Return the number of settled (handed over or refused) scheduled events, by
        partition."""
        return self.counters.column(c.POSITION)

    def lateness(self) -> list[int]:
        """Return the histogram of all events' lateness since the start."""
        return self.counters.lateness(len(self._workers))

    def describe(self) -> list[dict[str, Any]]:
        """Return one entry per worker, for the answer to the command `stats`."""
        return [
            {
                "pid": worker.pid,
                "partitions": [p for p, owner in enumerate(self._owner) if owner == worker.number],
                "alive": worker.ready,
                "cpu_s": round(self.counters.of_worker(worker.number, c.CPU_NS) / 1e9, 3),
                "queued": self.counters.of_worker(worker.number, c.QUEUED),
            }
            for worker in self._workers
            if not worker.empty or worker.number < self._wanted
        ]

    # Implementation.

    def poll(self) -> None:
        """Handle exited workers, start missing ones, and reassign partitions."""
        for worker in self._workers:
            if not worker.empty and not worker.alive:
                self._handle_exit(worker)
            worker.push()
        if not self._stopping:
            self._start_missing()
            self._place_partitions()
            self._stop_unneeded()

    def _start_missing(self) -> None:
        for worker in self._workers[: self._wanted]:
            if worker.may_start:
                worker.start(self._fd, len(self._workers), self._clock.offset_ns)

    def _place_partitions(self) -> None:
        now_s = time.monotonic()
        for partition, owner in enumerate(self._owner):
            target = self._workers[partition % self._wanted]
            if not target.working or owner == target.number:
                continue
            if owner is None:
                self._assign(partition, target)
            elif self._releasing.get(partition, 0.0) <= now_s and self._workers[owner].working:
                self._releasing[partition] = float("inf")
                self._workers[owner].send(do="release", partition=partition)

    def _assign(self, partition: int, worker: WorkerProcess) -> None:
        self._owner[partition] = worker.number
        events, derived = _form(self._schedules[partition]), list(map(_form, self._derived))
        worker.send(do="assign", partition=partition, events=events, derived=derived)

    def _stop_unneeded(self) -> None:
        """Stop workers that the rate no longer needs, once their partitions have other owners."""
        for worker in self._workers[self._wanted :]:
            if worker.working and worker.number not in self._owner:
                worker.stop(STOP_FLUSH_S)

    def _handle_exit(self, worker: WorkerProcess) -> None:
        """Log an unexpected exit of a worker, and free its partitions."""
        was_expected = worker.stopping
        code = worker.clean_up()
        queued = self.counters.of_worker(worker.number, c.QUEUED)
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        if not was_expected:
            self._log(
                f"Worker {worker.pid} died ({how}); up to about {queued} events in its queue "
                f"are lost. Restarting it in {worker.backoff_s:.1f} s; its partitions continue "
                "where they were."
            )
        elif code != 0:
            self._log(
                f"Worker {worker.pid} ended ({how}) before all its events were sent; the "
                "rest is counted as refused."
            )
        for partition, owner in enumerate(self._owner):
            if owner == worker.number:
                self._owner[partition] = None
                self._releasing.pop(partition, None)
        for token in [
            t for t, flush in self._flushes.items() if worker.number in flush.waiting_for
        ]:
            self._flushes.pop(token).done(None)

    def _on_message(self, worker: WorkerProcess, message: dict[str, Any]) -> None:
        """Handle a report of a worker."""
        getattr(self, "_on_" + message.pop("event"))(worker, **message)

    def _on_ready(self, worker: WorkerProcess) -> None:
        worker.ready = True

    def _on_log(self, worker: WorkerProcess, text: str) -> None:
        self._log(f"Worker {worker.pid}: {text}")

    def _on_released(self, _worker: WorkerProcess, partition: int) -> None:
        self._releasing.pop(partition, None)
        self._owner[partition] = None

    def _on_kept(self, _worker: WorkerProcess, partition: int) -> None:
        """Keep a partition with its worker, because messages in the worker's queue can't be sent
        now; ask for the release again later."""
        self._releasing[partition] = time.monotonic() + RETRY_RELEASE_S
        self._log(
            f"Partition {partition} can't move yet: its queue does not drain. "
            f"Trying again in {RETRY_RELEASE_S:g} s."
        )

    def _on_flushed(self, worker: WorkerProcess, token: str, left: int) -> None:
        flush = self._flushes.get(token)
        if flush is not None:
            flush.waiting_for.discard(worker.number)
            flush.left += left
            self._finish_flush(token)

    def _finish_flush(self, token: str) -> None:
        flush = self._flushes[token]
        if not flush.waiting_for:
            del self._flushes[token]
            flush.done(flush.left)


def _form(schedule: Schedule) -> dict[str, Any]:
    """Return the JSON form of a schedule, for an order."""
    return {"denominator": schedule.denominator, "segments": schedule.segments}


class _Flush:
    """A pending flush: workers that have not answered, and unsent messages so far."""

    def __init__(self, waiting_for: set[int], done: Callable[[int | None], None]) -> None:
        self.waiting_for = waiting_for
        self.done = done
        self.left = 0
