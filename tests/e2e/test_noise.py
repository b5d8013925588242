"""End-to-end test that another program makes a run void, and that its CPU use is measured."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from racetrack.analysis.outcome import VOID_EXIT_CODE
from racetrack.probes.noise import COLUMNS
from racetrack.run.burner import burning, burnt_pct
from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run
from tests.some_engines import CALIBRATION

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

EXPERIMENT = f"./run_experiment.sh {CALIBRATION} 3000 4 15 1.0"
BURNT_CORES, WITHIN_PCT = 0.25, 3.0


def test_another_program_makes_a_run_void_and_what_it_used_is_measured(
    door: Callable[..., Door],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    nothing_left: Callable[[], None],
) -> None:
    monkeypatch.setenv("NOISE_GATE", "true")
    file = tmp_path / "burnt.csv"
    with burning(BURNT_CORES, file):
        run = door(*shlex.split(EXPERIMENT))
        code = run.wait()
    assert code == VOID_EXIT_CODE, run.output
    folder = run_folder(run.output)
    record = read_run(folder)
    assert record["outcome"].startswith("Void: in the measured window other programs used")
    assert "NOISE_GATE=false" in run.output
    verdict = record["results"]["verdict"]  # the figures are recorded nevertheless
    burnt = burnt_pct(file, verdict["from_ms"], verdict["until_ms"])
    assert burnt > 10  # twice the permitted use, even if that program did not get all it wanted
    foreign = record["results"]["noise"]["foreign_cpu_pct"]
    assert foreign > burnt - WITHIN_PCT, record["results"]["noise"]
    core = record["results"]["noise"]["core"]
    assert 0.3 < core["mib_per_s"] / core["fastest_mib_per_s"] <= 1
    header, *rows = (folder / "noise.csv").read_text().splitlines()
    assert header == ",".join(COLUMNS)
    assert len(rows) > 15
    nothing_left()
    if foreign > burnt + WITHIN_PCT:
        pytest.skip(f"others used {foreign - burnt:.0f} % of a core beside it")
