"""End-to-end tests of plans, on the calibration engine: what was programmed is measured, wherever
the harness is killed on the way."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from racetrack.metrics import CAPACITY
from tests.e2e.shared import Door, NothingLeft, Open
from tests.some_engines import CALIBRATION

pytestmark = pytest.mark.alone

PER_S, EXPONENT = 4_000, 0.8
FACTOR = 2**EXPONENT
# Durations are short, because the calibration engine compiles nothing and has no noise. The engine
# needs a tenth of a core; broker and generator share it, so that they do not limit the engine.
SEARCH = """
cores = "shared"
phase = [
    { warm_up = "8s", at = "saturation", start = "3k" },
    { saturate = "10s", hold = "5s", batch = "5s" },
    { window = "10s", settle = "2s", loads = ["50%"] },
    { warm_up = "8s", at = "saturation", start = "3k", fresh = true },
    { search = ["2s", "5s"], trial = "10s", settle = "2s", within = "20m" },
    { saturate = "10s", hold = "5s", batch = "5s" },
]
"""
SCALE = """
cores = "shared"
repeats = 2
baseline = "first"
phase = [
    { warm_up = "8s", at = "saturation", start = "3k" },
    { saturate = "10s", hold = "5s", batch = "5s" },
    { window = "10s", settle = "2s", loads = ["6k"] },
]
"""
# Output after which the harness is killed: while the engine warms up, after its capacity is known,
# while a window is measured, while the second stack starts, in a trial, and after the search.
KILLED_AT = (
    r"demo loaded",
    rf"saturation: {CAPACITY.title}",
    r"> set events_per_second \d",
    r"== run \d of \d: .*stack 2",
    r"> set events_per_second \d",
    r"  search: ",
)


@pytest.fixture(autouse=True)
def _capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine does not matter at these rates.
    monkeypatch.setenv("NOISE_GATE", "false")
    # With C2, the broker would compile for most of a short run.
    monkeypatch.setenv("JVM_OPTIONS", "-XX:TieredStopAtLevel=1")
    monkeypatch.setenv("CAL_CAPACITY_PER_S", str(PER_S))
    monkeypatch.setenv("CAL_SCALING_EXPONENT", str(EXPONENT))


def compared(door: Open, tmp_path: Path, text: str, *typed: str) -> Door:
    plan = tmp_path / "mine.toml"
    plan.write_text(text)
    return door("race", "compare", *typed, "--plan", str(plan))


def resume_of(output: str) -> list[str]:
    found = re.search(r"after an interruption: \./race (compare --resume \S+)", output)
    assert found, output
    return found[1].split()


def test_a_search_that_is_killed_in_each_phase_finds_what_was_programmed(
    door: Open, nothing_left: NothingLeft, tmp_path: Path
) -> None:
    run, file = compared(door, tmp_path, SEARCH, CALIBRATION), tmp_path / "found.json"
    for number, line in enumerate(KILLED_AT):
        run.until(line)
        run.signal(signal.SIGKILL)
        run.wait()
        nothing_left()
        resume = resume_of(run.output)
        output = ["--json", str(file)] if number == len(KILLED_AT) - 1 else []
        run = door("race", *resume, *output)
    assert run.wait(300) == 0, run.output
    nothing_left()
    records: list[dict[str, Any]] = json.loads(file.read_text())["records"]
    measured = {record["window"]: record for record in records if record["outcome"] == "ok"}
    assert measured["saturation"]["capacity_per_s"] == pytest.approx(PER_S, rel=0.05)
    assert measured["50 % of capacity"]["verdict"] == "kept up"
    for key in ("sustained_2s_per_s", "sustained_5s_per_s"):
        assert 0.87 * PER_S <= measured["search"][key] <= PER_S, measured["search"]
    saturated = [record for record in records if record["capacity_per_s"]]
    assert len(saturated) == 2, "each stack was saturated and measured once"


def test_the_programmed_factor_of_replicas_is_found_after_an_interruption(
    door: Open, nothing_left: NothingLeft, tmp_path: Path
) -> None:
    first = compared(door, tmp_path, SCALE, f"{CALIBRATION}[ENGINE_REPLICAS=1|2]")
    first.until("== run 2 of 4")
    resume, file = first.interrupted(), tmp_path / "scale.json"
    nothing_left()
    second = door("race", *resume, "--json", str(file))
    assert second.wait(600) == 0, second.output
    assert "== run 1 of 3" in second.output
    nothing_left()
    (section,) = json.loads(file.read_text())["sections"]
    (claim,) = [of for of in section["claims"] if of["metric"] == "capacity_per_s"]
    one, two = (f"{CALIBRATION}[ENGINE_REPLICAS={n}]" for n in (1, 2))
    (pair,) = [of for of in claim["pairs"] if (of["of"], of["to"]) == (two, one)]
    assert pair["ratio"] == pytest.approx(FACTOR, rel=0.05) and pair["claimed"], pair
    assert f"`{one}` did not hold 6,000/s" in second.output, second.output
    assert f"`{two}` did not hold" not in second.output, second.output
