"""Checks of published results without their run folders, as for a pull request that adds one.

Several figures of a window follow from others, so one that was changed by hand, or mixed up,
contradicts them.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.analysis.windows import interpolated
from racetrack.errors import RacetrackError
from racetrack.metrics import (
    ACHIEVED,
    CAPACITY,
    CORE_SPEED,
    CPU_MEAN,
    CPU_PER_MILLION,
    GENERATOR_CPU,
    LAG_P50,
    LAG_P99,
    MEMORY,
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
# Results of one machine do not differ more in the speed of its fastest core, or in what the
# generator uses at equal rates. Where it used 1.2 to 1.5 times as much, the capacity of Kafka
# Streams was half as high (docs/noise.md).
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


def slower_than_published(root: Path, machine: Machine, mib_per_s: float) -> str:
    """Return why results of this machine would be refused now, given the speed of its cores; empty
    if they would not."""
    fastest = max(
        (
            result.noise.core_max_mib_per_s or 0.0
            for result in read_results(root)
            if _processor(result.machine) == _processor(machine)
        ),
        default=0.0,
    )
    if fastest <= SPEEDS_WITHIN * mib_per_s:
        return ""
    return (
        f"Cores run at {CORE_SPEED.text(mib_per_s)}, but ran at {CORE_SPEED.number(fastest)} in"
        " published results of such a machine: something slows them down (docs/noise.md), and"
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


def _slower_hours(results: Iterable[EngineResult]) -> Iterator[str]:
    """Yield those results of a place that were measured while equal input cost much more than in
    another one, so that a neighbour must have slowed the machine down."""
    used = {result.file_name: _generator_used(result) for result in results}
    for file, mine in used.items():
        times = {other: _times(mine, used[other]) for other in used if other != file}
        quicker = max(times, key=times.__getitem__, default="")
        if quicker and times[quicker] > SPEEDS_WITHIN:
            yield (
                f"{file}: {GENERATOR_CPU.key} is {times[quicker]:.2f} times that of {quicker} at"
                " the same rates: the machine was slower. Measure again in another hour"
            )


def _generator_used(result: EngineResult) -> list[tuple[float, float]]:
    """Return pairs of a rate and what the generator used at it, in % of a core; none if the engine
    had no cores of its own."""
    return [
        (window.figures[ACHIEVED.key], window.figures[GENERATOR_CPU.key])
        for window in result.windows
        if result.settings.get("engine_cpus") and window.per_s
        if {ACHIEVED.key, GENERATOR_CPU.key} <= window.figures.keys()
    ]


def _times(used: Sequence[tuple[float, float]], before: Sequence[tuple[float, float]]) -> float:
    """Return how many times the CPU time of another result the generator used at the same rates, in
    the median; 0 if no rates are common."""
    ratios = [pct / usual for per_s, pct in used if (usual := interpolated(before, per_s))]
    return statistics.median(ratios) if ratios else 0.0


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
        if _differ(cost, figures[CPU_PER_MILLION.key]):
            yield (
                f"{_is(window, CPU_PER_MILLION)}, but {_is(window, CPU_MEAN)} and"
                f" {_is(window, PROCESSED)} give {CPU_PER_MILLION.text(cost)}"
            )
    if window.per_s is None:
        return
    achieved = figures.get(ACHIEVED.key, window.per_s)
    if achieved < window.per_s * (1 - RATE_TOLERANCE):
        yield f"{_is(window, ACHIEVED)}, less than 99 % of the offered {window.per_s:,}/s"
    if window.share and capacity and _differ(window.share * capacity, window.per_s, rounded_to=1):
        yield (
            f"per_s is {window.per_s:,}, but {100 * window.share:g} % of the repeat's"
            f" {CAPACITY.title} are {window.share * capacity:,.0f}/s"
        )


def _differ(value: float, other: float, rounded_to: float = 0.0) -> bool:
    return abs(value - other) > max(ROUNDING * other, rounded_to)


def _is(window: WindowResult, metric: Metric) -> str:
    return f"{metric.key} {metric.text(window.figures.get(metric.key))}"
