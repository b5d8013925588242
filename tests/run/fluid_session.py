"""A session on a fake clock, whose engine is a fluid queue: simulates minutes in no time."""

import signal
from collections.abc import Callable
from contextlib import ExitStack
from typing import TextIO

import numpy as np
from numpy.random import Generator

from racetrack import terminal
from racetrack.analysis.curves import HEADER
from racetrack.clock import Clock
from racetrack.errors import RacetrackError
from racetrack.probes.noise import COLUMNS
from racetrack.results.folder import RunFolder
from racetrack.results.run import CpuQuota
from racetrack.run.session import LoadSample
from simulations.fluid import STEP_S, Queue, SimulatedEngine

START_MS = 1_790_000_000_000
CPU_S_EACH = 1e-5


class FakeClock(Clock):
    """The harness's two clocks, monotonic and epoch. Only a session advances them."""

    def __init__(self, began_ms: int = START_MS) -> None:
        self.now_s, self._began_ms = 0.0, began_ms

    def monotonic(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return self._began_ms + round(1000 * self.now_s)


class FluidSession:
    """The part of a session that the search uses. It writes `curves.csv` and `usage.csv` as a real
    session does.

    At most `most_per_s` events per second become due, and at most `hands_over_per_s` of them
    reach the engine. For the first `cold_s` seconds the engine compiles, so each event costs
    more CPU.
    """

    most_per_s = 1e9
    hands_over_per_s = 1e9
    cold_s = 0.0
    broker_cores = 0.0  # CPU use of the broker
    heap_gib_each: float | None = None  # growth of live objects on the heap per event
    dies_at_s = float("inf")
    interrupted_at_s = float("inf")
    # Until this time, other programs use a third of a core.
    disturbed_until_s = 0.0
    # CPU time of the broker for each event.
    broker_s_each = 0.0
    read_ns = 20.0  # time of a read from memory
    # A CPU quota, which stops processes for a tenth of the time.
    quota_cores: float | None = None

    def __init__(
        self,
        clock: FakeClock,
        engine: SimulatedEngine,
        rng: Generator,
        folder: RunFolder,
        name: str = "fake",
    ) -> None:
        self.clock = clock
        self.service, self.number = name, 0
        self._queue = Queue(engine, rng)
        self._closing = ExitStack()

        def begun(file: str, columns: str = "") -> TextIO:
            opened: TextIO = self._closing.enter_context(folder.open_for_lines(file))
            opened.write(columns and f"{columns}\n")
            return opened

        self._folder = folder
        self._file = begun("curves.csv", ",".join(HEADER))
        self._usage = begun("usage.csv", "at_ms,service,cpu_s,cpu_user_s,rss_gib")
        self._arrivals = begun("arrivals.csv", "at_ms,due,handed_over")
        self._delays = begun(f"{name}_sample_dt.log")
        self._noise = begun("noise.csv", ",".join(COLUMNS))
        self._cpu_s = self._foreign_s = 0.0
        self._is_heap_closed = False
        self.set_to: list[int] = []
        self.stopped = False

    def watch(self, seconds: float, what: str) -> None:
        self._let_pass(seconds)

    def wait_until(
        self,
        reached: Callable[[], bool],
        within_s: float,
        what: str,
        progress: Callable[[], str] = str,
    ) -> bool:
        until_s = self.clock.now_s + within_s
        while self.clock.now_s < until_s:
            progress()
            if reached():
                return True
            self._let_pass(1.0)
        return False

    def start_stack(self) -> None:
        self.clock.now_s += 10
        if self.quota_cores:
            quotas = (CpuQuota(cores=self.quota_cores, group="/quota"),)
            with self._folder.recording() as run:
                run.machine = run.machine.model_copy(update={"cpu_quotas": quotas})

    def run_demo(self) -> None:
        self._write("processed", 0)

    def offer(self, per_s: int) -> None:
        self._queue.offered_per_s = min(per_s, self.most_per_s)

    def set_rate(self, per_s: int) -> int:
        self.set_to.append(per_s)
        self.offer(per_s)
        return self.clock.now_ms()

    def load_sample(self) -> LoadSample:
        queue = self._queue
        return LoadSample(queue.now_s, int(queue.due), int(queue.reported), self._cpu_s)

    def sample_memory(self) -> None: ...

    def engine_heap(self, *, is_last: bool) -> float | None:
        """Return the live objects on the heap; None if the engine has none. No other call may
        follow the last."""
        assert not self._is_heap_closed
        self._is_heap_closed = is_last
        return self.heap_gib_each and 0.2 + self.heap_gib_each * self._queue.reported

    def stop(self) -> None:
        self._closing.close()
        self.stopped = True
        self.clock.now_s += 5

    def _let_pass(self, seconds: float) -> None:
        queue = self._queue
        for _ in range(max(1, round(seconds / STEP_S))):
            done, found = queue.done, queue.reported
            queue.most_handed_over_per_s = self.hands_over_per_s
            queue.step()
            self.clock.now_s += STEP_S
            cold = queue.now_s < self.cold_s
            self._cpu_s += (queue.done - done) * CPU_S_EACH * (1 + cold * np.exp(-queue.now_s / 9))
            self._foreign_s += (queue.now_s < self.disturbed_until_s) * STEP_S / 3
            self._write_step(is_reported=queue.reported != found)
            if queue.now_s > self.interrupted_at_s:
                raise terminal.Interrupted(signal.SIGINT)
            if queue.now_s >= self.dies_at_s:
                raise RacetrackError("the engine ended: out of memory")

    def _write_step(self, *, is_reported: bool) -> None:
        queue, at_ms, used_s = self._queue, self.clock.now_ms(), self._cpu_s
        broker_s = self.broker_cores * queue.now_s + queue.handed_over * self.broker_s_each
        busy_s = used_s + self._foreign_s
        cpu = f"{2 * queue.now_s:.2f},{busy_s:.2f},0,{busy_s:.2f},{used_s:.2f},0"
        throttled_s = 0.1 * queue.now_s if self.quota_cores else 0.0
        noise = f"{cpu},0.5,,,,,,{throttled_s:.2f},{self.read_ns}"
        self._usage.write(f"{at_ms},{self.service},{used_s:.3f},{used_s:.3f},0.1\n")
        self._usage.write(f"{at_ms},broker,{broker_s},{broker_s},0.1\n")
        generator_s = 0.1 * queue.now_s + queue.handed_over * 1e-6
        self._usage.write(f"{at_ms},loadgen,{generator_s},{generator_s},0.1\n")
        self._noise.write(f"{at_ms},{noise}\n")
        self._write("due", queue.due)
        self._write("handed_over", queue.handed_over)
        self._write("published", queue.handed_over)
        self._arrivals.write(f"{at_ms},{int(queue.due)},{int(queue.handed_over)}\n")
        if is_reported:
            self._write("processed", queue.reported)
            lag = f"max_received_at={at_ms - 50}, dt_ms=50.0"
            self._delays.write(f"timestamp={at_ms}, total={int(queue.reported)}, {lag}\n")

    def _write(self, name: str, count: float) -> None:
        self._file.write(f"{self.clock.now_ms()},{name},0,{int(count)}\n")
