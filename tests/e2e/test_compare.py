"""End-to-end tests of a comparison and of a changing load."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shared import Door, ended_well, run_folder
from tests.some_engines import CALIBRATION

pytestmark = pytest.mark.e2e

OTHER = "pg"  # computes when its views are read
PLAN = f"compare {CALIBRATION} {OTHER} --quick --load 1k --repeats 1"


def test_a_comparison_that_was_interrupted_goes_on_and_answers(
    door: Callable[..., Door], nothing_left: Callable[[], None], tmp_path: Path
) -> None:
    first = door("race", *PLAN.split())
    first.until("== run 2 of 2")
    resume = first.interrupted()
    nothing_left()
    file = tmp_path / "compared.json"
    second = door("race", *resume, "--json", str(file))
    assert second.wait(400) in (0, 5), second.output  # 5: other programs used the machine
    assert "== run 1 of 1" in second.output, "what was measured counts"
    nothing_left()
    compared: dict[str, Any] = json.loads(file.read_text())
    records = compared["records"]
    for figure in ("lag_p99_ms", "capacity_per_s"):
        engines = {record["engine"] for record in records if record.get(figure)}
        assert engines == {CALIBRATION, OTHER}, (figure, records)
    claims = [claim for section in compared["sections"] for claim in section["claims"]]
    assert not any(pair["claimed"] for claim in claims for pair in claim["pairs"])
    assert f"`{OTHER}` is not ranked" in second.output


def test_a_spike_is_driven_recorded_and_recovered_from(door: Callable[..., Door]) -> None:
    spike = door(
        *f"race run {CALIBRATION} --settle 5s --samples 1".split(), "--load", "spike 1k 10k 5s"
    )
    run = ended_well(spike)
    with (run_folder(spike.output) / "load.csv").open() as file:
        rates = [int(row["events_per_s"]) for row in csv.DictReader(file)]
    assert rates == [1_000, 10_000, 1_000]
    assert run["measured"]["engine_drained"], run["measured"]
    assert "recover" in spike.output, spike.output
