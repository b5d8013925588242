"""Texts on a resolved plan: what it does, how long it takes, and the conditions of its figures."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from racetrack.plan.memory import describe_need, with_room
from racetrack.plan.model import Phase, Saturate, Search, WarmUp, Window
from racetrack.plan.resolve import Cell, ResolvedPlan, rank


def describe(plan: ResolvedPlan) -> list[str]:
    """Return lines on what a plan does and how long that takes."""
    plan = with_room(plan)
    runs = len(plan.cells)
    minutes = f"{_duration(plan.estimated_s)}, and longer if other programs disturb it"
    stacks = f"{runs} {'run' if runs == 1 else 'runs'} on fresh stacks (seed {plan.seed})"
    lines = [
        f"{plan.name} takes about {minutes}:",
        f"  {stacks}: {', '.join(plan.variants)}; workload {plan.workload}",
    ]
    if plan.scout_s:
        lines.append(
            f"  before them, a scout of each variant, {plan.scout_s:g} s, which finds the rates"
        )
    if plan.input_alone_s:
        lines.append("  before them, a run of `cal` measures the broker with the input alone")
    alike = _by_phases(plan)
    for phases, labels in alike.items():
        which = ", ".join(labels) if len(alike) > 1 else "each run"
        lines.append(f"  {which}:")
        lines += [f"    {line}" for line in phases]
    order = [str(cell) for cell in plan.cells]
    shown = "; ".join(order[:12]) + (f"; and {runs - 12} more" if runs > 12 else "")
    more = filter(None, [*describe_need(plan), *plan.remarks, plan.note])
    return [*lines, f"  order: {shown}", *(f"  {text}" for text in more)]


def conditions(plan: ResolvedPlan) -> list[str]:
    """Return lines on the conditions under which the figures of a plan were measured."""
    repeats = f"{plan.repeats} repeats" if plan.repeats > 1 else "one run"
    how = f"{repeats} of each {plan.fresh}, on fresh stacks"
    lines = [f"Plan {plan.name}: {how}; order by seed {plan.seed}."]
    return [*lines, *filter(None, [plan.note]), *(f"{remark}." for remark in plan.remarks)]


def _by_phases(plan: ResolvedPlan) -> dict[tuple[str, ...], list[str]]:
    """Return lines on the phases of a run → the variants whose runs have them."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for variant in plan.variants:
        mine = [cell for cell in plan.cells if cell.variant == variant and cell.repeat == 1]
        if plan.fresh == "load":
            loads = tuple(chain.from_iterable(cell.loads for cell in mine))
            lines = [_phase_text(phase, loads) for phase in mine[0].phases]
        else:
            lines = [line for cell in mine for line in _leg(cell)]
        alike.setdefault(tuple(lines), []).append(variant)
    return alike


def _leg(cell: Cell) -> Iterator[str]:
    if cell.leg > 1:
        yield "then, on a fresh stack:"
    for phase in cell.phases:
        text = _phase_text(phase, phase.loads if isinstance(phase, Window) else ())
        yield f"{text} (in the first repeat)" if phase.once else text


def _phase_text(phase: Phase, loads: Sequence[str]) -> str:
    match phase:
        case WarmUp():
            where = {"saturation": "saturated, at most"}.get(phase.at, f"at the {phase.at} load,")
            return f"warm-up {where} {phase.for_s:g} s"
        case Window():
            more = f", until decided for {phase.decide_within_s:g} s at most"
            order = " in random order" if phase.order == "random" and len(loads) > 1 else ""
            faults = f", with {', '.join(phase.faults)}" if phase.faults else ""
            at = ", ".join(sorted(loads, key=rank) if phase.order == "random" else loads)
            return (
                f"{at}{order}: settle {phase.settle_s:g} s, measure"
                f" {phase.for_s:g} s{more if phase.decide_within_s else ''}{faults}"
            )
        case Saturate():
            return f"saturation: after {phase.hold_s:g} s, measure {phase.for_s:g} s"
        case Search():
            bounds = ", ".join(f"{bound:g} s" for bound in phase.bounds_s)
            within = f"until {phase.within_s / 60:g} minutes after the start at most"
            return f"search for the highest rates with a view lag p99 within {bounds}, {within}"
        case _:
            return "compare every view with its sources"


def _duration(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    if minutes >= 120:
        return f"{minutes / 60:.1f} hours"
    return f"{minutes} minute{'s' * (minutes != 1)}"
