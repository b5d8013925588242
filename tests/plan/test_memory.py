"""Tests of the memory for the events of a plan, and of runs that are divided because of it."""

import pytest

from racetrack import config, engines
from racetrack.plan.memory import events_of, heap_of, with_room
from racetrack.plan.model import parse_plan
from racetrack.plan.resolve import Options, ResolvedPlan, resolve

# An engine that keeps all events, and one that does not.
KEEPS, KEEPS_NONE = (
    next(
        engine.name
        for engine in engines.all_engines()
        if "native" in engine.runtimes
        and config.heaps_of_engine(engine.name)
        and bool(engine.bytes_per_event(config.load())) == keeps
    )
    for keeps in (True, False)
)
SMALL = f"{KEEPS}[{next(iter(config.heaps_of_engine(KEEPS))).upper()}=7g]"
FULL = """
repeats = 2
scout = '60s'
phase = [
    { warm_up = "20s", at = "lowest" },
    { warm_up = "40s", at = "highest" },
    { window = "40s", settle = "10s", order = "random", loads = ["10%", "50%", "80%", "95%"] },
    { saturate = "60s", hold = "50s" },
]
"""
CAPACITY_PER_S = 285_000


def resolved(text: str, *variants: str) -> ResolvedPlan:
    plan, options = parse_plan(text, "my.toml"), Options(variants=variants, seed=1)
    return resolve(plan, "my.toml", options, cores=(0, 1))


def parts(plan: ResolvedPlan, repeat: int) -> list[list[str]]:
    """Return what is measured on each stack of a repeat, in no order of loads."""
    return [
        [*sorted(cell.loads), *(type(phase).__name__ for phase in cell.phases)]
        for cell in plan.cells
        if cell.repeat == repeat
    ]


def test_events_are_those_of_all_phases() -> None:
    (cell, _) = resolved(FULL, KEEPS).cells
    events = events_of(cell.phases)
    # Windows last 2 s longer, and at saturation 15 s of work wait in the broker.
    at_capacity_s = 20 * 0.1 + 40 * 0.95 + 52 * (0.1 + 0.5 + 0.8 + 0.95) + 60 + 50 + 15
    assert (events.fixed, events.at_capacity_s) == pytest.approx((0, at_capacity_s))
    common = FULL.replace('"10%", "50%", "80%", "95%"', '"1k", "50% of slowest"')
    (cell, _) = resolved(common, KEEPS).cells
    assert events_of(cell.phases).at(10_000) > events_of(cell.phases, 2_000).at(10_000)


def test_a_run_that_does_not_fit_on_a_heap_is_divided_alike_in_all_repeats() -> None:
    plan = resolved(FULL, SMALL)
    roomy = with_room(plan, {plan.variants[0]: CAPACITY_PER_S})
    assert parts(roomy, 1) == parts(roomy, 2) and len(parts(roomy, 1)) > 1
    heap = heap_of(KEEPS, config.load(plan.settings_of(plan.cells[0])))
    for cell in roomy.cells:
        assert events_of(cell.phases).at(CAPACITY_PER_S) <= heap.most_events
    assert all(of.count("WarmUp") == 2 for of in parts(roomy, 1))
    first = [cell for cell in roomy.cells if cell.repeat == 1]
    loads = [text for cell in first for text in cell.loads]
    assert sorted(loads) == sorted(plan.cells[0].loads)
    assert [cell.leg for cell in first] == [*range(1, len(first) + 1)]
    assert any("divided" in remark for remark in roomy.remarks)
    again = with_room(roomy, {plan.variants[0]: CAPACITY_PER_S})
    assert again == roomy


def test_stacks_that_a_plan_asks_for_keep_their_order_when_others_are_divided() -> None:
    text = FULL.replace(
        "{ saturate", '{ warm_up = "9s", at = "saturation", fresh = true },{ saturate'
    )
    plan = resolved(text, SMALL)
    roomy = with_room(plan, {plan.variants[0]: CAPACITY_PER_S})
    legs = [cell.leg for cell in roomy.cells if cell.repeat == 2]
    assert legs == list(range(1, len(legs) + 1)) and len(legs) > 2
    assert roomy.cells[-1].loads == ()


def test_an_engine_that_keeps_no_events_and_a_small_capacity_need_one_stack() -> None:
    for name, per_s in ((KEEPS_NONE, 1e9), (KEEPS, 100.0)):
        plan = resolved(FULL, name)
        assert with_room(plan, {name: per_s}) == plan


def test_a_load_that_fits_on_no_stack_is_named() -> None:
    text = f'variants = ["{KEEPS}"]\n[[phase]]\nwindow = "60s"\nloads = ["1k", "5M"]'
    roomy = with_room(resolved(text))
    assert [cell.loads for cell in roomy.cells] == [("1k",), ("5M",)]
    assert any("may fill its heap" in remark for remark in roomy.remarks)
