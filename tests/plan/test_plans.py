"""Tests of the plans in `plans/`: their durations and loads."""

import pytest

from racetrack.plan.model import find_plan, read_plan_file
from racetrack.plan.resolve import Options, ResolvedPlan, resolve


def resolved(name: str, *variants: str, seed: int = 1) -> ResolvedPlan:
    plan, chosen = read_plan_file(find_plan(name)), Options(variants=variants, seed=seed)
    return resolve(plan, name, chosen, memory_bytes=24 << 30, cores=(0, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variants", "runs"),
    [
        ("sweep", "dh pg", "dh 50, pg 50, dh 5k, pg 5k, dh 35k, pg 35k"),
        ("as-published", "", "mz 50, dh 50, mz 5k, dh 5k, mz 35k, dh 35k, mz 100k, dh 100k"),
        ("calibrate", "", "cal 3000, cal 3000, cal 3000, cal 3000"),
    ],
)
def test_runs_on_fresh_stacks_alternate_or_follow_their_rates(
    name: str, variants: str, runs: str
) -> None:
    cells = resolved(name, *variants.split()).cells
    shown = ", ".join(f"{cell.engine} {cell.loads[0]}" for cell in cells if cell.repeat == 1)
    assert shown.startswith(runs)


def test_a_random_order_is_that_of_its_seed_and_another_in_each_repeat() -> None:
    def orders(seed: int) -> list[tuple[str, tuple[str, ...]]]:
        cells = resolved("full", "dh", "pg", seed=seed).cells
        return [(cell.engine, cell.loads) for cell in cells if cell.loads]

    made = orders(seed=1)
    assert made == orders(seed=1) != orders(seed=2)
    assert {frozenset(loads) for _, loads in made} == {frozenset(made[0][1])}
    assert len(set(made)) > 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variants", "most_minutes"),
    [("quick", "dh pg", 13), ("full", "dh flink kstreams", 120), ("how-far", "dh flink pg", 90)],
)
def test_a_comparison_takes_as_long_as_a_user_would_wait(
    name: str, variants: str, most_minutes: float
) -> None:
    assert resolved(name, *variants.split()).estimated_s <= 60 * most_minutes
