"""Checks of published results without their run folders, as for a pull request that adds one.

Several figures of a window follow from others, so one that was changed by hand, or mixed up,
contradicts them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from racetrack.analysis.noise import Gate, why_slow
from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.errors import RacetrackError
from racetrack.metrics import (
    ACHIEVED,
    CAPACITY,
    CORE_SPEED,
    CPU_MEAN,
    CPU_PER_MILLION,
    LAG_P50,
    LAG_P99,
    MEMORY,
    MEMORY_READ,
    PROCESSED,
    READ_TIME_P50,
    READ_TIME_P99,
    RSS_MAX,
    VIEW_LAG_P50,
    VIEW_LAG_P99,
    Metric,
    is_registered,
)
from racetrack.report.standings import place_of, read_result, read_results
from racetrack.results.published import EngineResult, WindowResult
from racetrack.results.run import Machine

RISING = (
    (LAG_P50, LAG_P99),
    (VIEW_LAG_P50, VIEW_LAG_P99),
    (READ_TIME_P50, READ_TIME_P99),
)
# Figures are rounded to five digits, and rates to whole events.
ROUNDING = 0.001
# Results of one machine do not differ more in the speed of its fastest core.
SPEEDS_WITHIN = 1.25


def faults(root: Path) -> list[str]:
    """Return what is wrong with the results below `root`, each with the file, and the window and
    figure if it is in one."""
    results, texts = [], []
    for file in sorted(root.rglob("*.json")):
        try:
            result = read_result(file, root)
        except RacetrackError as error:
            texts.append(str(error))
            continue
        results.append(result)
        texts += [f"{result.file_name}: {why}" for why in contradictions(result)]
    for _, of_place in groupby(sorted(results, key=place_of), key=place_of):
        together = list(of_place)
        texts += [*_other_machines(together), *_slower_hours(together)]
    return texts


def slower_than_published(root: Path, machine: Machine, mib_per_s: float, read_ns: float) -> str:
    """Return why results of this machine would be refused now, given the speed of its cores and the
    time of a read from memory; empty if they would not."""
    noises = [
        result.noise
        for result in read_results(root)
        if _processor(result.machine) == _processor(machine)
    ]
    fastest = max((noise.core_max_mib_per_s or 0.0 for noise in noises), default=0.0)
    quiet_ns = min((ns for noise in noises if (ns := noise.memory_read_min_ns)), default=None)
    if fastest > SPEEDS_WITHIN * mib_per_s:
        now, then = CORE_SPEED.text(mib_per_s), CORE_SPEED.text(fastest)
        what = f"a core does {now} of BLAKE2b, but did {then}"
    elif quiet_ns and why_slow(read_ns, quiet_ns, Gate()):
        now, then = MEMORY_READ.text(read_ns), MEMORY_READ.text(quiet_ns)
        what = f"a read from memory takes {now}, but took {then}"
    else:
        return ""
    return (
        f"The machine is slow now: {what} in published results (docs/noise.md)."
        " `./race publish --check` refuses results from such an hour."
    )


def _processor(machine: Machine) -> tuple[str, str, int | None]:
    return machine.cpu_model, machine.cpu_numbers, machine.cores


def _other_machines(results: Iterable[EngineResult]) -> Iterator[str]:
    """Yield those results of a place whose cores were so much slower than others' that they must be
    of another machine."""
    speeds = {
        result.file_name: speed for result in results if (speed := result.noise.core_max_mib_per_s)
    }
    fastest = max(speeds, key=lambda file: speeds[file], default="")
    for file, speed in speeds.items():
        if speeds[fastest] > SPEEDS_WITHIN * speed:
            yield (
                f"{file}: core_max_mib_per_s {speed:g}, but {speeds[fastest]:g} in {fastest}: these"
                " are two machines under one name, or others slowed one down. Measure again in"
                " another hour, and all engines that are to be compared on one machine. Until then,"
                " delete the file, and run `./race publish`"
            )


def _slower_hours(results: Sequence[EngineResult]) -> Iterator[str]:
    """Yield those results of a place that were measured while reads from memory took much longer
    than in another one, since another machine used it."""
    quickest = {
        result.file_name: ns for result in results if (ns := result.noise.memory_read_min_ns)
    }
    quietest = min(quickest, key=quickest.__getitem__, default="")
    for result in results:
        slowest_ns = result.noise.memory_read_max_ns
        if why_slow(slowest_ns, quickest.get(quietest), Gate()):
            yield (
                f"{result.file_name}: memory_read_max_ns {slowest_ns:g}, but"
                f" {quickest[quietest]:g} in {quietest}: other machines slowed this one down, or"
                " these are two under one name. Measure again in another hour"
            )


def contradictions(result: EngineResult) -> Iterator[str]:
    """Yield what in a result can't be so, with the window and the figure."""
    if result.measured_from > result.measured_until:
        yield f"measured_until {result.measured_until} is before {result.measured_from}"
    lists = (result.views.right, result.views.wrong, result.views.absent)
    named = [view for names in lists for view in names]
    if len(set(named)) < len(named):
        yield "views: a view is in two of the lists right, wrong and absent"
    if result.views.of_workload is not None and len(named) > result.views.of_workload:
        yield f"views: {len(named)} are named, but the workload has {result.views.of_workload}"
    capacities = {
        (window.experiment, window.repeat): window.figures[CAPACITY.key]
        for window in result.windows
        if CAPACITY.key in window.figures
    }
    for number, window in enumerate(result.windows, 1):
        load = "" if window.per_s is None else f", {window.per_s:,}/s"
        capacity = capacities.get((window.experiment, window.repeat))
        for why in _in_window(window, capacity, result.machine.memory_gib):
            yield f"window {number} ({window.tag}{load}): {why}"


def _in_window(
    window: WindowResult, capacity: float | None, memory_gib: float | None
) -> Iterator[str]:
    figures = window.figures
    for key in figures:
        if not is_registered(key):
            yield f"{key}: there is no such figure"
    for lower, higher in RISING:
        if figures.get(lower.key, 0.0) > figures.get(higher.key, float("inf")):
            yield f"{_is(window, lower)} is above {_is(window, higher)}"
    if memory_gib is not None:
        for metric in (MEMORY, RSS_MAX):
            if figures.get(metric.key, 0.0) > memory_gib:
                yield f"{_is(window, metric)}, but the machine has {memory_gib:g} GiB"
    if not window.intervals:  # means of several runs need not fit
        yield from _of_rates(window, capacity)


def _of_rates(window: WindowResult, capacity: float | None) -> Iterator[str]:
    figures = window.figures
    if {CPU_PER_MILLION.key, CPU_MEAN.key, PROCESSED.key} <= figures.keys():
        cost = figures[CPU_MEAN.key] * 1e4 / figures[PROCESSED.key]
        if differ(cost, figures[CPU_PER_MILLION.key]):
            yield (
                f"{_is(window, CPU_PER_MILLION)}, but {_is(window, CPU_MEAN)} and"
                f" {_is(window, PROCESSED)} give {CPU_PER_MILLION.text(cost)}"
            )
    if window.per_s is None:
        return
    achieved = figures.get(ACHIEVED.key, window.per_s)
    if achieved < window.per_s * (1 - RATE_TOLERANCE):
        yield f"{_is(window, ACHIEVED)}, less than 99 % of the offered {window.per_s:,}/s"
    if window.share and capacity and differ(window.share * capacity, window.per_s, rounded_to=1):
        yield (
            f"per_s is {window.per_s:,}, but {100 * window.share:g} % of the repeat's"
            f" {CAPACITY.title} are {window.share * capacity:,.0f}/s"
        )


def differ(value: float, other: float, rounded_to: float = 0.0) -> bool:
    """Return whether two numbers differ by more than rounding explains."""
    return abs(value - other) > max(ROUNDING * other, rounded_to)


def _is(window: WindowResult, metric: Metric) -> str:
    return f"{metric.key} {metric.text(window.figures.get(metric.key))}"
