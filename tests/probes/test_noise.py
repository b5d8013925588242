"""Tests of other programs' CPU use, from the kernel's counters, of which nothing is counted twice;
and of the speed of a core, which other programs do not change."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from racetrack.probes.noise import (
    HarnessMeter,
    ProgramsMeter,
    ServicesMeter,
    core_mib_per_s,
    machine_s,
)
from racetrack.probes.usage import Meter
from tests.probes.burning import BURNT_S, LEAST_S, Account, burn, burnt

STAT = """\
cpu  1000 100 500 8000 200 0 100 50 30 0
cpu0 500 50 250 4000 100 0 50 25 15 0
cpu1 500 50 250 4000 100 0 50 25 15 0
intr 1 2 3
"""


def test_the_machine_is_busy_when_it_is_neither_idle_nor_stolen() -> None:
    passed_s, busy_s, steal_s = machine_s(STAT, 50.0)
    assert (passed_s, steal_s) == (100.0, 0.5)
    assert busy_s == pytest.approx(100 - 80 - 2 - 0.5)


def process(folder: Path, number: int, parent: int, ticks: int, name: str = "(sh) (1)") -> None:
    """Write a process's files in `/proc`, with `ticks` hundredths of a second in each counter of
    CPU time."""
    (folder / str(number)).mkdir(parents=True)
    times = f"{ticks} {ticks} {ticks} {ticks}"
    stat = f"{number} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {times} 20 0 1 0 7 8 9\n"
    (folder / str(number) / "stat").write_text(stat)
    (folder / str(number) / "comm").write_text(f"{name}\n")


def test_programs_are_what_is_no_thread_of_the_kernel(tmp_path: Path) -> None:
    process(tmp_path, 1, 0, 100, "init")
    process(tmp_path, 2, 0, 5_000, "kthreadd")
    process(tmp_path, 9, 2, 5_000, "kworker/0:1-events")
    process(tmp_path, 4711, 1, 25)
    (tmp_path / "4712").mkdir()  # the process ended during the look
    (tmp_path / "self").mkdir()
    meter = ProgramsMeter(tmp_path)
    assert meter.cpu_s() == 5.0
    assert meter.cpu_s() == 5.0  # also when the kernel's threads are cached


def test_programs_are_not_known_where_not_all_are_seen(tmp_path: Path) -> None:
    """A container shows only its own processes, and a user may see only their own. Then the CPU
    time of all programs is unknown."""
    process(tmp_path, 1, 0, 100, "init")
    assert ProgramsMeter(tmp_path).cpu_s() is None
    process(tmp_path, 2, 1, 100, "sh")
    assert ProgramsMeter(tmp_path).cpu_s() is None


@pytest.mark.slow
def test_a_program_that_has_ended_still_counts() -> None:
    meter = ProgramsMeter()
    before_s = meter.cpu_s()
    if before_s is None:
        pytest.skip("not all processes are seen here")
    burn()
    assert (after_s := meter.cpu_s()) is not None
    assert after_s - before_s >= LEAST_S


@pytest.mark.slow
def test_a_child_of_the_harness_is_the_harness_unless_it_is_a_service() -> None:
    with burnt() as service, burnt() as own:
        with_own = HarnessMeter(lambda: {"service": [service.pid]})
        with_none = HarnessMeter(lambda: {"service": [service.pid], "other": [own.pid]})
        least_s = with_none.cpu_s()
        assert LEAST_S <= with_own.cpu_s() - least_s <= 2 * BURNT_S


def test_an_account_that_begins_anew_goes_on_and_one_that_is_away_stands_still() -> None:
    account = Account()
    meter = ServicesMeter(Meter(lambda: {"broker": []}), {"broker": account}, list)
    seen = []
    for account.used_s in (1.0, 5.0, None, 0.5, 2.0):
        seen.append(meter.cpu_s())
    assert seen == [1.0, 5.0, 5.0, 5.5, 7.0]


def test_what_runs_the_services_is_theirs_and_who_has_an_account_counts_once() -> None:
    here = os.getpid()
    meter = Meter(lambda: {"broker": [here], "engine": [here]})
    account = Account(1_000.0)
    alone_s = meter.cpu_s(excluding=("engine",))
    both_s = ServicesMeter(meter, {"broker": account}, lambda: [here]).cpu_s()
    assert both_s - 1_000 == pytest.approx(2 * alone_s, abs=0.2)


def best() -> float:
    """Return the highest of twenty speeds, as another virtual machine may use the core for a
    while."""
    return max(core_mib_per_s() for _ in range(20))


def test_a_program_on_the_same_core_does_not_make_it_slower() -> None:
    """The other program takes half of the time, but none of this thread's CPU time."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        alone = best()
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
            try:
                beside = best()
            finally:
                burner.kill()
    finally:
        os.sched_setaffinity(0, cores)
    assert beside > 0.7 * alone
