"""Tests of the plans in `plans/`: their durations, and that some measure what the commands measured
that they replace: `recorded/*.json` are the runs that those planned, with two cores and 24 GiB."""

import json
from pathlib import Path
from typing import Any

import pytest

from racetrack import config
from racetrack.plan.model import (
    Saturate,
    WarmUp,
    Window,
    find_plan,
    load_of,
    read_plan_file,
)
from racetrack.plan.resolve import Cell, Options, ResolvedPlan, resolve
from racetrack.workloads.contract import find_workload

RECORDED = Path(__file__).with_name("recorded")
MEMORY_BYTES, CORES = 24 << 30, (0, 1)
CASES = [
    (file.stem, number)
    for file in sorted(RECORDED.glob("*.json"))
    for number in range(len(json.loads(file.read_text())))
]


@pytest.fixture(autouse=True)
def _as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOISE_GATE", raising=False)


def recorded(name: str, number: int) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())[number]
    return content


def resolved(name: str, case: dict[str, Any]) -> ResolvedPlan:
    given = case.get("options", {})
    options = Options(
        variants=tuple(case["variants"]),
        loads=tuple(given.get("loads", ())),
        repeats=given.get("repeats"),
        seed=case["seed"],
        workload=given.get("workload"),
    )
    return resolve(
        read_plan_file(find_plan(name)),
        name,
        options,
        environment={},
        memory_bytes=MEMORY_BYTES,
        cores=CORES,
    )


def effective(settings: dict[str, str]) -> dict[str, Any]:
    """Return the settings that differ from those without overrides."""
    base = config.load().model_dump(mode="json")
    mine = config.load(settings).model_dump(mode="json")
    return {name.upper(): value for name, value in mine.items() if value != base[name]}


def durations(cell: Cell) -> list[list[Any]]:
    """Return the durations of the phases, in the form of the records."""
    found: list[list[Any]] = []
    for phase in cell.phases:
        if isinstance(phase, WarmUp):
            found.append(["warm_up", phase.for_s, phase.at])
        elif isinstance(phase, Saturate):
            found.append(["saturate", phase.for_s, phase.hold_s, phase.batch_s])
        elif isinstance(phase, Window):
            top = [phase.top.samples, phase.top.every_s, cell.decide_within_s] if phase.top else []
            found.append(["window", phase.for_s, phase.settle_s, *top])
    return found


def loads(cell: Cell) -> list[int]:
    """Return the rates."""
    return [load_of(text).per_s or 0 for text in cell.loads]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_plan_has_the_recorded_runs(name: str, number: int) -> None:
    case = recorded(name, number)
    plan = resolved(name, case)
    assert [
        {
            "engine": cell.engine,
            "repeat": cell.repeat,
            "settings": effective(cell.settings),
            "loads": loads(cell),
            "phases": durations(cell),
        }
        for cell in plan.cells
    ] == case["runs"]
    if "estimated_s" in case:
        assert plan.estimated_s == pytest.approx(case["estimated_s"])


@pytest.mark.parametrize(
    ("name", "variants", "most_minutes"),
    [("quick", "dh pg", 13), ("full", "dh flink kstreams", 120), ("how-far", "dh flink pg", 90)],
)
def test_a_comparison_takes_as_long_as_a_user_would_wait(
    name: str, variants: str, most_minutes: float
) -> None:
    plan = resolved(name, {"variants": variants.split(), "seed": 1})
    assert plan.estimated_s <= 60 * most_minutes


@pytest.mark.parametrize(("name", "least", "most"), [("quick", 0.25, 0.8), ("full", 0.1, 0.95)])
def test_engines_are_compared_at_shares_of_their_own_capacity(
    name: str, least: float, most: float
) -> None:
    plan = resolved(name, {"variants": ["dh", "pg"], "seed": 1})
    shares = [
        share
        for text in plan.cells[0].loads
        if not (load := load_of(text)).is_common and (share := load.share)
    ]
    assert (min(shares), max(shares)) == (least, most)


def test_a_resolved_plan_survives_json() -> None:
    plan = resolved("full", {"variants": ["dh", "flink"], "seed": 1})
    text = plan.model_dump_json(by_alias=True)
    assert ResolvedPlan.model_validate_json(text) == plan


def test_without_reads_the_environment_gives_none_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READS_PER_SECOND", "2")
    assert find_workload("shop").queries
    plan = resolve(
        read_plan_file(find_plan("quick")),
        "quick",
        Options(variants=("dh",), reads=False),
    )
    settings = config.load(plan.settings_of(plan.cells[0]))
    assert settings.reads_per_second == 0
    assert not any("client reads" in remark for remark in plan.remarks)
