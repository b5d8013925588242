"""Memory that the events of a plan take, on the heaps of engines that keep them and in the broker;
and the division of runs whose events do not fit on a heap into runs on several fresh stacks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from racetrack import config
from racetrack.config import Settings
from racetrack.engines import find_engine
from racetrack.plan.model import Load, Phase, Saturate, Search, Verify, WarmUp, Window, load_of
from racetrack.plan.resolve import TRIALS, Cell, ResolvedPlan, phase_s, rank
from racetrack.units import BYTES_PER_GIB
from racetrack.workloads import load_profile
from racetrack.workloads.contract import find_workload

# Share of a heap that events may take, and the share above which G1 marks live objects without a
# pause (InitiatingHeapOccupancyPercent), which on one core takes half of the engine's CPU time.
FILLED, MARKED = 0.9, 0.45
# At saturation, so many seconds of work wait in the broker when the measurement ends.
BACKLOG_S = 15.0
LEAST_BYTES = 0.05 * BYTES_PER_GIB  # less is not mentioned
PER_S = 10_000  # rate for which needs are printed while capacities are unknown


@dataclass(frozen=True)
class Events:
    """A number of events: `fixed`, and those of `at_capacity_s` seconds at the engine's
    capacity."""

    fixed: float = 0.0
    at_capacity_s: float = 0.0

    def __add__(self, other: "Events") -> "Events":
        return Events(self.fixed + other.fixed, self.at_capacity_s + other.at_capacity_s)

    def at(self, capacity_per_s: float) -> float:
        """Return the number of events for a capacity."""
        return self.fixed + self.at_capacity_s * capacity_per_s


def events_of(phases: Sequence[Phase], slowest_per_s: float | None = None) -> Events:
    """Return the number of events that phases offer. While the capacity of the slowest engine is
    unknown, it is taken for the engine's own, which is at least as high."""
    loads = [load_of(text) for phase in phases if isinstance(phase, Window) for text in phase.loads]
    is_saturated = any(isinstance(phase, WarmUp) and phase.at == "saturation" for phase in phases)
    total = Events()
    for phase in phases:
        match phase:
            case WarmUp(at="saturation"):
                total += Events(0, phase.for_s)
            case WarmUp():
                offered = [_in(load, phase.for_s, slowest_per_s) for load in loads]
                choose = min if phase.at == "lowest" else max
                total += choose(offered, key=lambda events: events.at(PER_S), default=Events())
            case Window():
                for load in map(load_of, phase.loads):
                    with_load = phase.model_copy(update={"loads": (load.text,)})
                    total += _in(load, phase_s(with_load) + phase.decide_within_s, slowest_per_s)
            case Saturate():
                total += Events(0, phase_s(phase, is_saturated) + BACKLOG_S)
            case Search():
                total += Events(0, TRIALS * (phase.settle_s + phase.trial_s))
    return total


def _in(load: Load, seconds: float, slowest_per_s: float | None) -> Events:
    """Return the number of events of a load in a time."""
    if load.profile:
        return Events(load_profile.parse(load.profile).mean_per_s * seconds)
    if load.share and load.is_common and slowest_per_s:
        return Events(load.share * slowest_per_s * seconds)
    return Events((load.per_s or 0) * seconds, (load.share or 0.0) * seconds)


@dataclass(frozen=True)
class Heap:
    """Heap of an engine: its size, and the bytes for each event (0: it keeps none)."""

    size: float
    per_event: float

    @property
    def most_events(self) -> float:
        """Number of events for which the heap is large enough."""
        return FILLED * self.size / self.per_event if self.per_event else math.inf

    @property
    def unmarked_events(self) -> float:
        """Number of events up to which garbage collection costs little."""
        return MARKED / FILLED * self.most_events


def heap_of(engine: str, settings: Settings) -> Heap:
    """Return the heap of an engine; of a group, the one that is full first."""
    heaps = [
        Heap(
            settings.engine_replicas * config.heap_bytes(member.name, settings),
            0.0 if member.runs_elsewhere(settings) else member.bytes_per_event(settings),
        )
        for member in find_engine(engine).members
    ]
    return min(heaps, key=lambda heap: heap.most_events)


def with_room(plan: ResolvedPlan, scouted_per_s: Mapping[str, float] | None = None) -> ResolvedPlan:
    """Return a plan whose runs are divided so that the events of each stack fit on the engine's
    heap, as far as capacities are known; `scouted_per_s` are those of variants. Remarks name what
    was divided, and what does not fit on a stack of its own either."""
    scouted = scouted_per_s or {}
    slowest_per_s = min(scouted.values(), default=None)
    cells: list[Cell] = []
    remarks: dict[str, None] = dict.fromkeys(plan.remarks)
    for cell in plan.cells:
        heap, own = heap_of(cell.engine, _settings(plan, cell)), scouted.get(cell.variant, 0.0)
        stacks = _divided(cell.phases, heap.most_events, own, slowest_per_s)
        more = cells[-1].leg - cell.leg + 1 if cell.leg > 1 and cells else 0
        cells += [
            cell.model_copy(update={"phases": phases, "leg": cell.leg + more + number})
            for number, phases in enumerate(stacks)
        ]
        needs = [events_of(phases, slowest_per_s).at(own) * heap.per_event for phases in stacks]
        size = f"{heap.size / BYTES_PER_GIB:.1f} GiB"
        if len(stacks) > 1:
            needed = f"{sum(needs) / BYTES_PER_GIB:.1f} GiB"
            why = f"the events of one would need {needed} of its heap of {size}"
            remarks[f"Runs of {cell.variant} are divided among {len(stacks)} stacks: {why}"] = None
        if max(needs) > FILLED * heap.size:
            needed = f"{max(needs) / BYTES_PER_GIB:.1f} GiB"
            remarks[f"{cell.variant} may fill its heap of {size}: events need {needed}"] = None
    return plan.model_copy(update={"cells": tuple(cells), "remarks": tuple(remarks)})


def _settings(plan: ResolvedPlan, cell: Cell) -> Settings:
    return config.load(plan.settings_of(cell))


def _divided(
    phases: Sequence[Phase], most: float, own_per_s: float, slowest_per_s: float | None
) -> list[tuple[Phase, ...]]:
    """Return phases as the phases of several stacks, on each of which at most `most` events are
    offered, if possible. Each stack begins with the warm-ups."""

    def fits(those: Sequence[Phase]) -> bool:
        return events_of(those, slowest_per_s).at(own_per_s) <= most

    if fits(phases) or any(isinstance(phase, Verify) for phase in phases):
        return [tuple(phases)]
    warm_ups = [phase for phase in phases if isinstance(phase, WarmUp)]
    stacks: list[tuple[Phase, ...]] = []
    for part in _parts(phases):
        if stacks and fits(joined := _with(stacks[-1], part, phases)):
            stacks[-1] = joined
        else:
            stacks.append((*warm_ups, part))
    return stacks or [tuple(phases)]


def _parts(phases: Sequence[Phase]) -> Iterator[Phase]:
    """Yield the smallest parts that can be measured on stacks of their own. Their order does not
    depend on the order of loads, so that all repeats are divided alike."""
    for phase in phases:
        if isinstance(phase, Window):
            for text in sorted(phase.loads, key=rank):
                yield phase.model_copy(update={"loads": (text,)})
        elif not isinstance(phase, WarmUp):
            yield phase


def _with(stack: tuple[Phase, ...], part: Phase, phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """Return the phases of a stack with another part, whose loads join those of the same window, in
    the order of `phases`."""
    *others, last = stack
    if not (isinstance(part, Window) and isinstance(last, Window)):
        return (*stack, part)
    if part.model_copy(update={"loads": last.loads}) != last:
        return (*stack, part)
    loads = {*last.loads, *part.loads}
    given = [text for phase in phases if isinstance(phase, Window) for text in phase.loads]
    ordered = tuple(text for text in given if text in loads)
    return (*others, part.model_copy(update={"loads": ordered}))


def describe_need(plan: ResolvedPlan) -> list[str]:
    """Return lines on the memory for the events of each variant's largest run, if they need any
    worth mentioning."""
    needed: dict[str, list[str]] = {}
    for variant in plan.variants:
        cells = [cell for cell in plan.cells if cell.variant == variant]
        settings = _settings(plan, cells[0])
        heap = heap_of(cells[0].engine, settings)
        events = max(
            (events_of(cell.phases) for cell in cells), key=lambda events: events.at(PER_S)
        )
        stored = find_workload(settings.workload).stored_bytes_in(settings)
        if max(heap.per_event, stored) * events.at(PER_S) < LEAST_BYTES:
            continue
        kept = settings.events_partitions * settings.kafka_retention_bytes
        most = f", at most {kept / BYTES_PER_GIB:.1f} GiB" if kept >= 0 else ""
        parts = [f"broker {_gib(events, stored)}{most}"]
        if heap.per_event:
            size = f"of {heap.size / BYTES_PER_GIB:.1f} GiB"
            parts.insert(0, f"heap {_gib(events, heap.per_event)}, {size}")
        needed.setdefault("; ".join(parts), []).append(variant)
    return [
        f"events on a stack of {', '.join(events)} need: {text}" for text, events in needed.items()
    ]


def _gib(events: Events, bytes_each: float) -> str:
    fixed, more = (
        f"{bytes_each * count / BYTES_PER_GIB:.1f} GiB"
        for count in (events.fixed, events.at_capacity_s * PER_S)
    )
    per_s = f"{more} for each {PER_S:,}/s of its capacity"
    if bytes_each * events.fixed < LEAST_BYTES and events.at_capacity_s:
        return per_s
    return f"{fixed} and {per_s}" if events.at_capacity_s else fixed
