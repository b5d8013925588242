"""End-to-end tests that every program outside the product runs: benchmarks, simulations, and the
test cluster's scripts. Brief runs say nothing about speed, so no figure's size is checked."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from racetrack.config import REPO
from tests.e2e.shared import NothingLeft


def program(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words,
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO), **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def bench(*arguments: str, **environment: str) -> dict[str, Any]:
    """Return the figures of a brief benchmark."""
    done = program("bench/loadgen.sh", "--brief", "--json", *arguments, **environment)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_every_part_runs() -> None:
    figures = bench()
    assert figures["flat_out"].keys() == {"loadgen", "ProducerPerformance", "confluent-kafka"}
    for name, producer in figures["flat_out"].items():
        (run,) = producer["runs"]
        assert run["messages"] == figures["messages"] > 0, name
        assert producer["cpu_s_per_million"] > 0, name
    assert [at["rate"] for at in figures["paced"]] == [50, 5_000, 100_000]
    assert all(at["achieved_per_s"] > 0 for at in figures["paced"])
    alone, crowded = figures["clients"]
    for clients in (alone, crowded):
        assert clients["answers_ms"]["max"] > 0
        assert clients["lateness_ms"].keys() == {"events", "purchases"}


def test_another_workload_s_events_are_measured() -> None:
    figures = bench("--only", "flat", WORKLOAD="ads")
    (run,) = figures["flat_out"]["loadgen"]["runs"]
    assert run["messages"] == figures["messages"]


def test_rows_in_topics_are_followed(nothing_left: NothingLeft) -> None:
    done = program(sys.executable, "bench/topics.py", "1000", "2")
    assert done.returncode == 0, done.stderr
    assert re.search(r"client [\d.]+ %, broker [\d.]+ %.* p50 \d+ ms, p99 \d+ ms", done.stdout)
    nothing_left()


def test_every_part_of_a_report_is_measured() -> None:
    done = program(sys.executable, "bench/reports.py", "--brief")
    assert done.returncode in (0, 1), done.stderr  # 1: too slow, which a busy machine may be
    lines = done.stdout.splitlines()
    assert all(re.search(r"within|EXCEEDS", line) for line in lines)
    for what in ("read 25 runs", "raw files opened", "./race report", "./race compare --help"):
        assert any(line.strip().startswith(what) for line in lines), done.stdout


@pytest.mark.parametrize(
    ("module", "arguments"), [("fluid", ["1"]), ("verdicts", ["1", "one partition of 16 stalled"])]
)
def test_every_simulation_runs(module: str, arguments: list[str]) -> None:
    done = program(sys.executable, "-m", f"simulations.{module}", *arguments)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d", done.stdout)


@pytest.mark.parametrize("script", ["rig.sh", "runs.sh"])
def test_the_test_cluster_says_how_it_is_used(script: str) -> None:
    done = program(f"tests/kubernetes/{script}", "nothing")
    assert done.returncode == 2
    assert script in done.stderr + done.stdout


def test_mutants_are_drawn_by_seed() -> None:
    first, again = (
        program(sys.executable, "bench/mutants.py", "draw", "--count", "3") for _ in "ab"
    )
    assert first.returncode == 0, first.stderr
    mutants = [json.loads(line) for line in first.stdout.splitlines()]
    assert len(mutants) == 3
    assert all(mutant["old"] != mutant["new"] for mutant in mutants)
    assert again.stdout == first.stdout
