"""Main loop of the load generator: drives the workers, the database changes and the log, and
answers the control process."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any, Callable

from loadgen import stats
from loadgen.clock import NS_PER_MS, NS_PER_S, Clock
from loadgen.commands import EVENTS, Load
from loadgen.config import Config, show_rate
from loadgen.control import listen
from loadgen.control_process import ControlProcess
from loadgen.derived import all_derived
from loadgen.mysql import Database
from loadgen.rdkafka import KafkaError
from loadgen.schedule import Schedule
from loadgen.source import Source
from loadgen.worker_pool import WorkerPool
from loadgen.workload import Events, Workload
from loadgen.writer import Writer

# A new rate takes effect this much later, so that every worker has received it by then.
RATE_LEAD_NS = 10 * NS_PER_MS
RATE_LEAD_TO_PODS_NS = 40 * NS_PER_MS  # the same if there are workers in other pods
# Time in which the last events of a source are due (`Source.last_events`), from the beginning of a
# millisecond on: all have the same timestamp, so that they close the same windows everywhere.
LAST_EVENTS_NS = NS_PER_MS // 2
LOOP_S = 0.005
FLUSH_WITHIN_S = 5.0
DRAIN_WRITER_S = 1.0
STOP_KILL_S = 4.0
# Largest number of derived events that one call counts as due.
MAX_COUNTED = 100_000


def partition_schedules(start_ns: int, weights: Sequence[int]) -> list[Schedule]:
    """Return a schedule per partition, at rate 0.

    The numerator of a rate is the total rate, in thousandths per second, times the partition's
    weight, so the partitions' rates add up exactly. The partitions' first events are spread over
    time, so that a slow rate does not send one burst over all partitions."""
    count = len(weights)
    denominator = sum(weights) * 1000 * NS_PER_S
    return [
        Schedule.starting(start_ns, 0, denominator, denominator * (2 * p + 1) // (2 * count))
        for p in range(count)
    ]


class Generator(Load):
    """The load generator once database and topics are ready. `run` returns after a signal."""

    def __init__(
        self,
        config: Config,
        workload: Workload,
        events: Events,
        database: Database | None,
        log: Callable[[str], None],
    ) -> None:
        self._config, self._log = config, log
        self._lead_ns = RATE_LEAD_TO_PODS_NS if config.worker_hosts else RATE_LEAD_NS
        self._clock = Clock.anchored_now()
        self._started_ns = self._clock.now_ns()
        self._selector = selectors.DefaultSelector()
        self._weights = events.weights
        self._schedules = partition_schedules(self._started_ns, self._weights)
        # Used only to count derived events that are due; the workers compute and send them.
        self._derived = all_derived(workload, events, self._started_ns)
        self._due_derived = [0] * len(self._weights)
        self._workers = WorkerPool(
            config,
            self._clock,
            self._selector,
            self._schedules,
            [derived.schedule for derived in self._derived],
            log,
        )
        sources = workload.sources(self._no_rate_yet)
        self._derived_from = tuple(workload.derived_from)
        self._sources: dict[str, Source] = {source.key: source for source in sources}
        self._writer = Writer(config, self._clock, sources, database, log)
        self._milli = dict.fromkeys([EVENTS, *self._sources], 0)
        self._changed_ns = dict.fromkeys(self._sources, 0)  # time of the last change of each rate
        self._windows = {key: stats.Window() for key in self._milli}
        self._stop_signal = 0
        self._flush_count = 0

    def _no_rate_yet(self) -> Schedule:
        return Schedule.starting(self._started_ns, 0, 1000 * NS_PER_S)

    def run(self) -> None:
        """Start the workers, the load and the control server, and run until SIGTERM or SIGINT."""
        self._catch_signals()
        listener = listen(self._config.command_host, self._config.command_port)
        control = ControlProcess(listener, self._selector, self, self._log)
        self._workers.want(self._config.events_milli_per_s)
        self._wait_for_workers()
        self._begin(EVENTS, self._config.events_milli_per_s)
        for key, source in self._sources.items():
            if source.start_milli_per_s or not source.optional:
                self._begin(key, source.start_milli_per_s)
        self._writer.start()
        control.open()
        self._log("Listening for commands on {}:{}".format(*listener.getsockname()[:2]))
        always = {key for key, source in self._sources.items() if not source.optional}
        periodic_log = stats.PeriodicLog({EVENTS, *always}, self._log)
        next_sample_ns = self._clock.now_ns()
        while not self._stop_signal:
            self._step()
            now_ns = self._clock.now_ns()
            self._writer.tick(now_ns)
            if now_ns >= next_sample_ns:
                # Keep the interval; skip samples that are late.
                next_sample_ns += stats.SAMPLE_EVERY_NS * (
                    1 + (now_ns - next_sample_ns) // stats.SAMPLE_EVERY_NS
                )
                self._sample()
                control.poll()
                periodic_log.log_if_due(self._done(), sum(self._workers.refused()))
                self._writer.log_refused()
        self._end(control)

    def _wait_for_workers(self) -> None:
        within_s = self._config.start_timeout_s
        deadline_s = time.monotonic() + within_s
        while not self._workers.all_placed and not self._stop_signal:
            if time.monotonic() > deadline_s:
                self._workers.kill()
                raise KafkaError(f"No worker started in {within_s} s. See the lines above for why.")
            self._step()

    def _begin(self, key: str, milli: int) -> None:
        self._change(key, milli)
        self._log(
            f"Simulating {stats.noun(key)} actions with an initial rate of "
            f"{show_rate(milli)} per second"
        )

    def _done(self) -> dict[str, int]:
        """Return the number of completed events, by key."""
        counts = {key: source.done for key, source in self._sources.items()}
        return {EVENTS: sum(self._workers.handed()), **counts}

    def _step(self) -> None:
        """Run one iteration of the loop: handle events, then the state of workers."""
        for key, mask in self._selector.select(LOOP_S):
            if (
                self._selector.get_map().get(key.fd) is not None
            ):  # an earlier callback may have closed it
                key.data(mask)
        self._workers.poll()

    def _catch_signals(self) -> None:
        """Let signals end the loop; the wake-up socket interrupts its wait."""
        wake_read, wake_write = socket.socketpair()
        wake_read.setblocking(False)
        wake_write.setblocking(False)
        self._wake = (wake_read, wake_write)
        signal.set_wakeup_fd(wake_write.fileno())
        self._selector.register(
            wake_read, selectors.EVENT_READ, lambda _mask: wake_read.recv(1024) and None
        )

        def stop(number: int, _frame: Any) -> None:
            self._stop_signal = number

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    def _end(self, control: ControlProcess) -> None:
        """Write and flush pending data for at most a few seconds, then stop all processes."""
        self._log(f"Stopping on {signal.Signals(self._stop_signal).name}")
        deadline_s = time.monotonic() + STOP_KILL_S
        control.stop()
        self._pause()
        self._workers.stop()
        self._writer.stop(DRAIN_WRITER_S)
        while not self._workers.gone and time.monotonic() < deadline_s:
            self._step()
        self._workers.kill()
        handed, refused = sum(self._workers.handed()), sum(self._workers.refused())
        written = "".join(
            f"; {source.done} {source.name}s done, {source.refused} refused"
            for source in self._sources.values()
            if not source.optional
        )
        self._log(f"Stopped: {handed} events handed over, {refused} refused{written}")

    def _pause(self) -> None:
        """Set all rates to 0, for workers and writer at the same moment."""
        for key in self._milli:
            self._change(key, 0)
        paused_ns = self._clock.now_ns() + self._lead_ns
        while self._clock.now_ns() < paused_ns:
            self._step()
        self._writer.tick(paused_ns)

    # Methods for the control socket.

    def rates(self) -> dict[str, str]:
        helps = {key: f"the same for {source.help_text}" for key, source in self._sources.items()}
        return {EVENTS: "change the rate; 0 pauses (up to three decimals)", **helps}

    def get_rate_milli(self, key: str) -> int:
        return self._milli[key]

    def set_rate_milli(self, key: str, milli_per_s: int) -> None:
        old = self._milli[key]
        self._change(key, milli_per_s)
        self._log(
            f"Changing {stats.noun(key)} rate from {show_rate(old)} to {show_rate(milli_per_s)}"
            " per second"
        )

    def _change(self, key: str, milli: int) -> None:
        self._milli[key] = milli
        at_ns = (self._clock.now_ns() + self._lead_ns) // NS_PER_MS * NS_PER_MS + NS_PER_MS
        if key in self._sources:
            self._change_source(key, at_ns, milli)
            return
        for schedule, weight in zip(self._schedules, self._weights):
            schedule.change(at_ns, milli * weight)
        self._workers.want(milli)
        self._workers.change_rate(at_ns, milli)
        if not milli:
            self._send_last_events(at_ns)

    def _change_source(self, key: str, at_ns: int, milli: int) -> None:
        """Change the rate of a source at `at_ns`, but not before an earlier change."""
        self._changed_ns[key] = at_ns = max(at_ns, self._changed_ns[key])
        source = self._sources[key]
        source.schedule.change(at_ns, milli)
        if source.name in self._derived_from:
            kind = self._derived_from.index(source.name)
            self._derived[kind].schedule.change(at_ns, milli)
            self._workers.change_derived_rate(kind, at_ns, milli)

    def _send_last_events(self, at_ns: int) -> None:
        """Send the last events of each source that has some, after those of the main topic."""
        for key, source in self._sources.items():
            if source.last_events:
                milli = source.last_events * 1000 * NS_PER_S // LAST_EVENTS_NS
                self._change_source(key, at_ns, milli)
                self._change_source(key, at_ns + LAST_EVENTS_NS, self._milli[key])

    def stats_line(self) -> str:
        # Read the counters before the clock, so that never more events are handed over than due.
        handed, refused = self._workers.handed(), self._workers.refused()
        now_ns = self._clock.now_ns()
        self._count_derived(now_ns)
        due = [s.due_by(now_ns) + n for s, n in zip(self._schedules, self._due_derived)]
        return stats.to_line(
            {
                "now_ms": now_ns // NS_PER_MS,
                "pid": os.getpid(),
                "uptime_s": round((now_ns - self._started_ns) / NS_PER_S, 3),
                "events": stats.events_entry(
                    self._milli[EVENTS],
                    self._windows[EVENTS],
                    due,
                    handed,
                    refused,
                ),
                **{
                    f"{source.name}s": stats.source_entry(
                        self._milli[key],
                        self._windows[key],
                        {**source.counts(now_ns), "newest": source.newest},
                    )
                    for key, source in self._sources.items()
                },
                "workers": self._workers.describe(),
            }
        )

    def flush(self, done: Callable[[str], None]) -> None:
        self._flush_count += 1

        def answer(left: Any) -> None:
            if left is None:
                done("Error: a worker died while flushing; what was in its queue is lost.")
            elif left:
                done(
                    f"Error: {left} messages have not left the client's queue in "
                    f"{FLUSH_WITHIN_S:g} s. Is the broker up?"
                )
            else:
                done(f"Flushed {sum(self._workers.handed())} messages")

        self._workers.flush(f"flush/{self._flush_count}", FLUSH_WITHIN_S, answer)

    def _count_derived(self, now_ns: int) -> None:
        for derived in self._derived:
            for event in derived.take(now_ns, MAX_COUNTED):
                self._due_derived[event.partition] += 1

    def _sample(self) -> None:
        now_ns = self._clock.now_ns()
        lateness = {EVENTS: self._workers.lateness()}
        lateness.update((key, list(source.lateness)) for key, source in self._sources.items())
        for key, done in self._done().items():
            self._windows[key].add(stats.Sample(now_ns, done, lateness[key]))
        for schedule, position in zip(self._schedules, self._workers.positions()):
            schedule.forget(position)
        self._count_derived(now_ns)
        for derived in self._derived:
            settled = self._workers.next_derived(derived.kind)
            derived.schedule.forget(min(derived.next, settled))
