"""Tests of the table that compares the published experiment with our runs of it."""

import re
from pathlib import Path

import pytest

from racetrack.analysis import table
from racetrack.plan.model import PLANS, find_plan, load_of, read_plan_file
from racetrack.plan.resolve import resolve
from racetrack.report.reference import Reference, beside_reference, read_reference
from tests.report.folders import RunSpec, edit, run
from tests.run_json import read_run

ARTICLE = Reference.model_validate(
    {
        "title": "A race",
        "machine": "sixteen cores",
        "notes": ["Each run was made once."],
        "results": [
            {"engine": engine, "events_per_s": rate, "cpu_mean_pct": cpu, "rss_max_gib": 2.5}
            for engine, rate, cpu in (
                ("steady", 1_000, 33.1),
                ("swift", 1_000, 179.6),
                ("steady", 4_000, 82.2),
                ("steady", 90_000, 240.0),
            )
        ],
    }
)


@pytest.fixture
def lines(tmp_path: Path) -> list[str]:
    logs = tmp_path / "logs"
    folders = [
        run(logs, RunSpec(engine="steady", rate=1_000, cpu_pct=40.0)),
        run(logs, RunSpec(engine="steady", rate=4_000, cpu_pct=60.0, leak=0.05)),
        run(logs, RunSpec(engine="steady", rate=4_000), tag="2026.03.22.05.09.00_UTC_slow"),
    ]
    arguments = read_run(folders[2])["arguments"] | {"events_per_s": 90_000}
    why = "The generator achieved 4,000.0 events/s of the 90,000 requested"
    edit(folders[2], arguments=arguments, outcome=why)
    return beside_reference(ARTICLE, table.read(folders))


def row(lines: list[str], rate: str, engine: str) -> str:
    return next(line for line in lines if f" {rate} " in line and f" {engine} " in line)


def test_both_stand_beside_each_other_with_the_verdict_here(lines: list[str]) -> None:
    for rate, engine, published, here in (
        ("1,000", "steady", "33.1", "kept up"),
        ("4,000", "steady", "82.2", "fell behind"),
        ("1,000", "swift", "179.6", "not run"),
        ("90,000", "steady", "240.0", "not offered"),
    ):
        line = row(lines, rate, engine)
        assert published in line and here in line
        measured = re.search(r" (39|40|59|60)\.\d", line)  # computed from random samples
        assert bool(measured) == (here in {"kept up", "fell behind"})


def test_a_void_repeat_does_not_hide_a_good_one(tmp_path: Path) -> None:
    folders = [run(tmp_path, RunSpec(engine="steady", rate=1_000), tag=tag) for tag in ("a", "b")]
    edit(folders[1], outcome="Void: the machine was busy.")
    assert "kept up" in row(beside_reference(ARTICLE, table.read(folders)), "1,000", "steady")


def test_the_plan_has_the_engines_and_rates_of_the_table() -> None:
    file = find_plan("as-published")
    plan = resolve(read_plan_file(file), file.stem)
    assert file.parent == PLANS and plan.repeats == 1
    reference = read_reference(plan.reference)
    offered = [(cell.engine, load_of(load).per_s) for cell in plan.cells for load in cell.loads]
    published = [(result.engine, result.events_per_s) for result in reference.results]
    assert sorted(offered) == sorted(published)
