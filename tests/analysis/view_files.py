"""Files like a run's `tracer_events.csv` and `views.csv`, of views whose truth is known."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from racetrack import poisson
from racetrack.results.run import TracedViewRecord

START_MS = 1_795_000_000_000
PARTITIONS = 3
EVERY_MS = 100.0  # between two tracer events
MARKS = 1_500


def due_ms(number: int, from_ms: int = START_MS) -> float:
    """Return the due time of tracer event `number`, 1 for the first."""
    return from_ms + EVERY_MS * number


def numbers_of(view: TracedViewRecord, partition: int, partitions: int = PARTITIONS) -> list[int]:
    """Return the numbers of the tracer events that a view shows in a partition."""
    every = range(1, MARKS + 1)
    return [
        n
        for n in every
        if (n - 1) // 2 % partitions == partition and view.parity in (None, (n - 1) % 2)
    ]


def write_reads(
    folder: Path,
    queries: Mapping[str, TracedViewRecord | None],
    delay_ms: float,
    took_ms: float,
    per_s: float,
    from_ms: int = START_MS,
    partitions: int = PARTITIONS,
    count: int = 240,
) -> None:
    """Write the `reads.csv` of a client that sends these queries in turn and gets each answer
    `took_ms` later. The queries' views show each tracer event `delay_ms` late."""
    lines = ["due_ms,sent_ms,answered_ms,query,rows,tracer_values,error"]
    times_s = itertools.islice(poisson.due_s(per_s), count)
    for since_s, (query, view) in zip(times_s, itertools.cycle(queries.items()), strict=False):
        sent_ms = from_ms + 10_000 + round(1000 * since_s)
        rows = ""
        if view:
            there = [
                [
                    n
                    for n in numbers_of(view, p, partitions)
                    if due_ms(n, from_ms) + delay_ms <= sent_ms
                ]
                for p in range(partitions)
            ]
            values = [due_ms(max(n, default=0), from_ms) if view.is_time else len(n) for n in there]
            rows = ";".join(f"{value:.0f}" for value in values)
        lines.append(f"{sent_ms},{sent_ms},{sent_ms + took_ms:.0f},{query},20,{rows},")
    (folder / "reads.csv").write_text("\n".join(lines) + "\n")


def write(
    folder: Path,
    views: Sequence[TracedViewRecord],
    delay_ms: float,
    growing: float = 0.0,
    from_ms: int = START_MS,
    partitions: int = PARTITIONS,
) -> None:
    """Write views that show each tracer event late by `delay_ms`, plus `growing` ms per ms."""
    rows = ["at_ms,newest,due_ms,committed"]
    for at_ms in np.arange(from_ms + 50, from_ms + MARKS * EVERY_MS + 50, 100.0):
        newest = int((at_ms - from_ms) // EVERY_MS)
        if newest:
            rows.append(f"{at_ms:.0f},{newest},{due_ms(newest, from_ms):.0f},{newest}")
    (folder / "tracer_events.csv").write_text("\n".join(rows) + "\n")
    seen = []
    for view, partition in itertools.product(views, range(partitions)):
        for count, number in enumerate(numbers_of(view, partition, partitions), start=1):
            due = due_ms(number, from_ms)
            value = due if view.is_time else count
            late_ms = delay_ms + growing * (due - from_ms)
            seen.append((due + late_ms, view.name, partition, value))
    lines = [f"{at_ms:.0f},{name},{p},{value:.0f}" for at_ms, name, p, value in sorted(seen)]
    (folder / "views.csv").write_text("\n".join(["at_ms,view,partition,value", *lines]) + "\n")
