"""Runs real workers of the load generator against a broker, without MySQL and control socket, and
prints their results as one line of JSON.

    pypy3 bench/worker_driver.py flat MESSAGES          one worker, all messages due at once
    pypy3 bench/worker_driver.py paced RATE SECONDS     as many workers as the rate needs

Reads the load generator's settings (loadgen/config.py) from the environment.
"""

import json
import os
import resource
import selectors
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadgen import config as settings
from loadgen.clock import NS_PER_MS, NS_PER_S, Clock
from loadgen.counters import quantile_us
from loadgen.generator import partition_schedules
from loadgen.rdkafka import Library
from loadgen.schedule import Schedule
from loadgen.worker_pool import WorkerPool
from loadgen.workload import make

# Rate and lateness are measured after this time, when new workers have warmed up.
SETTLE_S = 2.0
# In a flat-out run messages become due at this rate, far above the capacity of any machine.
FLAT_RATE_PER_S = 20_000_000


class Driver:
    """A pool of workers, and the loop that drives it."""

    def __init__(self, config: settings.Config) -> None:
        workload = make(config, settings.Reader(os.environ))
        self.weights = workload.events(Library(config.librdkafka)).weights
        self.clock = Clock.anchored_now()
        self.selector = selectors.DefaultSelector()
        self.schedules = partition_schedules(self.clock.now_ns(), self.weights)
        no_derived = [Schedule.starting(self.clock.now_ns(), 0, 1) for _ in workload.derived_from]
        self.pool = WorkerPool(
            config, self.clock, self.selector, self.schedules, no_derived, self._log
        )

    def rate(self, milli_per_s: int) -> int:
        """Change the rate; return the time at which it takes effect, epoch nanoseconds."""
        at_ns = self.clock.now_ns() + 10 * NS_PER_MS
        self._change(at_ns, milli_per_s)
        return at_ns

    def _change(self, at_ns: int, milli_per_s: int) -> None:
        for schedule, weight in zip(self.schedules, self.weights):
            schedule.change(at_ns, milli_per_s * weight)
        self.pool.change_rate(at_ns, milli_per_s)

    def burst(self, messages: int) -> int:
        """Make `messages` due at FLAT_RATE_PER_S; return the start time, epoch nanoseconds."""
        at_ns = self.clock.now_ns() + 10 * NS_PER_MS
        self._change(at_ns, FLAT_RATE_PER_S * 1000)
        self._change(at_ns + messages * NS_PER_S // FLAT_RATE_PER_S, 0)
        return at_ns

    def until(self, condition: Callable[[], bool], within_s: float) -> None:
        """Poll the pool until a condition holds."""
        deadline_s = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline_s:
                sys.exit(f"worker_driver: no result in {within_s:g} s. Is the broker up?")
            for key, mask in self.selector.select(0.005):
                key.data(mask)
            self.pool.poll()

    def flush(self) -> None:
        """Wait until librdkafka has sent all messages."""
        answers: list[Any] = []
        self.pool.flush("bench", 60.0, answers.append)
        self.until(lambda: bool(answers), 70.0)
        if answers != [0]:
            sys.exit(f"worker_driver: the flush left {answers[0]} messages behind")

    def stop(self) -> None:
        """Stop the workers."""
        self.pool.stop()
        self.until(lambda: self.pool.gone, 10.0)

    def _log(self, text: str) -> None:
        print(text, file=sys.stderr)


def flat(config: settings.Config, messages: int) -> dict[str, Any]:
    """Measure one worker at full speed."""
    driver = Driver(replace(config, max_workers=1))
    driver.until(lambda: driver.pool.all_placed, 30.0)
    (worker,) = driver.pool.describe()
    busy_s, threads_s = machine_busy_s(), threads_cpu_s(worker["pid"])
    start_ns = driver.burst(messages)
    due = sum(s.due_by(start_ns + 3600 * NS_PER_S) for s in driver.schedules)
    driver.until(lambda: sum(driver.pool.handed()) >= due, 300.0)
    driver.flush()
    elapsed_s = (driver.clock.now_ns() - start_ns) / NS_PER_S
    busy_s = machine_busy_s() - busy_s
    used_s = {
        thread: cpu_s - threads_s.get(thread, 0.0)
        for thread, cpu_s in threads_cpu_s(worker["pid"]).items()
    }
    driver.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "messages": sum(driver.pool.handed()),
        "elapsed_s": elapsed_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "busy_cores": busy_s / elapsed_s,
        "cores": sum(used_s.values()) / elapsed_s,
        "busiest_thread_cores": max(used_s.values()) / elapsed_s,
    }


def threads_cpu_s(pid: int) -> dict[str, float]:
    """Return the CPU seconds so far of each thread of a process, by thread id."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return {path.parent.name: int(path.read_text().split()[0]) / NS_PER_S for path in files}


def machine_busy_s() -> float:
    """Return the busy seconds of all cores so far: neither idle nor stolen."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def paced(config: settings.Config, rate: int, seconds: float) -> dict[str, Any]:
    """Measure a constant rate: accuracy, lateness and CPU time."""
    driver = Driver(config)
    driver.pool.want(rate * 1000)
    driver.until(lambda: driver.pool.all_placed, 30.0)
    driver.rate(rate * 1000)
    first = _sample(driver, SETTLE_S)
    last = _sample(driver, seconds)
    driver.stop()
    elapsed_s = (last[0] - first[0]) / NS_PER_S
    count = last[1] - first[1]
    late = [b - a for a, b in zip(first[2], last[2])]
    return {
        "rate": rate,
        "seconds": elapsed_s,
        "achieved_per_s": count / elapsed_s,
        "rate_error_pct": 100 * abs(count / elapsed_s - rate) / rate,
        "lateness_ms": {q: quantile_us(late, x) / 1000 for q, x in _QUANTILES.items()},
        "workers": len(driver.pool.describe()),
        "cpu_pct_of_a_core": 100 * (last[3] - first[3]) / elapsed_s,
    }


_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def _sample(driver: Driver, after_s: float) -> tuple[int, int, list[int], float]:
    """Wait `after_s` seconds; return the time in epoch nanoseconds and the totals so far: messages
    handed over, histogram of lateness, CPU seconds."""
    end_s = time.monotonic() + after_s
    driver.until(lambda: time.monotonic() >= end_s, after_s + 10.0)
    cpu_s = sum(worker["cpu_s"] for worker in driver.pool.describe())
    lateness = driver.pool.lateness()
    return driver.clock.now_ns(), sum(driver.pool.handed()), lateness, cpu_s


def main() -> None:
    """Run the command line."""
    # The database is not used.
    config = settings.load({"MYSQL_PASSWORD": "unused", **os.environ})
    if sys.argv[1:2] == ["flat"] and len(sys.argv) == 3:
        result = flat(config, int(sys.argv[2]))
    elif sys.argv[1:2] == ["paced"] and len(sys.argv) == 4:
        result = paced(config, int(sys.argv[2]), float(sys.argv[3]))
    else:
        sys.exit(__doc__)
    print(json.dumps(result))


if __name__ == "__main__":
    os.environ.setdefault("MYSQL_PASSWORD", "unused")
    main()
