"""End-to-end tests that every benchmark of the load generator runs. A few thousand messages say
nothing about speed, so these tests look at no figure's size."""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from racetrack.config import REPO

pytestmark = pytest.mark.e2e


def bench(*arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the figures of a brief benchmark."""
    done = subprocess.run(
        [REPO / "bench/loadgen.sh", "--brief", "--json", *arguments],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
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
        assert clients["lateness_ms"].keys() == {"pageviews", "purchases"}


def test_another_workload_s_events_are_measured() -> None:
    figures = bench("--only", "flat", environment={"WORKLOAD": "ads"})
    (run,) = figures["flat_out"]["loadgen"]["runs"]
    assert run["messages"] == figures["messages"]
