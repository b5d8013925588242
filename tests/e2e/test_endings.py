"""End-to-end tests that every run, however it ends, leaves nothing behind but a complete
`run.json`."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack.config import REPO, Settings
from racetrack.stack import processes
from racetrack.stack.lifetime import Watchdog
from tests.e2e.shared import LINE_WITHIN_S, NothingLeft, Open, WaitUntil
from tests.run_json import read_run
from tests.some_engines import CALIBRATION, EXAMPLE

# The calibration engine is up within seconds. The whole stack, with JVMs and Debezium, is used only
# to interrupt a start or the loading of a demo, and for Ctrl-C on a pipeline.
LIGHT = CALIBRATION


@pytest.mark.parametrize(
    ("step", "number", "engine"),
    [
        (1, signal.SIGINT, EXAMPLE),
        (3, signal.SIGTERM, LIGHT),
        (5, signal.SIGINT, LIGHT),
        (6, signal.SIGINT, LIGHT),
    ],
)
def test_a_signal_in_any_step(
    door: Open, nothing_left: NothingLeft, step: int, number: signal.Signals, engine: str
) -> None:
    wait_s = "0.5" if step > 4 else "30"
    run = door("run_experiment.sh", engine, "1000", wait_s, "2", "1.0")
    run.until(rf"^\[{step}/6\]")
    run.signal(number)
    code = run.wait()
    nothing_left()
    record = run.record()
    if step == 6:  # everything was measured: the clean-up finishes, and the run counts
        assert (code, record["outcome"]) == (0, "ok"), run.output
    else:
        assert (code, record["outcome"]) == (128 + number, f"interrupted by {number.name}")
        assert len(record["steps"]) >= step


@pytest.fixture
def pipeline(
    settings: Settings, tmp_path: Path
) -> Iterator["tuple[subprocess.Popen[bytes], Path]"]:
    """Start an experiment with its output piped to `tee`; end it if the test fails."""
    seen = tmp_path / "seen"
    started = subprocess.Popen(
        ["bash", "-c", f"./run_experiment.sh {EXAMPLE} 1000 30 2 1.0 | tee {seen}"],
        cwd=REPO,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    yield started, seen
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    Watchdog("native", settings.stack_name).wait_for_last(print)


def test_ctrl_c_on_a_pipeline_ends_its_reader_too_and_still_leaves_nothing(
    pipeline: "tuple[subprocess.Popen[bytes], Path]",
    nothing_left: NothingLeft,
    wait_until: WaitUntil,
) -> None:
    process, seen = pipeline
    wait_until(lambda: seen.exists() and "[4/6]" in seen.read_text(), "step 4", 2 * LINE_WITHIN_S)
    os.killpg(process.pid, signal.SIGINT)  # to every process of the pipeline, as a terminal does
    found = REPO / re.findall(r"into (.+)$", seen.read_text(), re.MULTILINE)[0]

    def has_cleaned_up() -> bool:
        """Return whether the four steps and the clean-up have ended."""
        steps = read_run(found)["steps"]
        return len(steps) == 5 and bool(steps[-1]["ended_at"])

    wait_until(has_cleaned_up, "the end of its last step")
    assert read_run(found)["outcome"] == "interrupted by SIGINT"
    process.wait(30)
    nothing_left()


@pytest.mark.parametrize(
    ("moment", "and_begun", "engine"),
    [(r"^  mysql ready", set(), EXAMPLE), (r"^\[5/6\]", {"top"}, LIGHT)],
)
def test_what_a_killed_runner_leaves_is_ended_by_its_watchdog(
    door: Open,
    nothing_left: NothingLeft,
    settings: Settings,
    wait_until: WaitUntil,
    moment: str,
    and_begun: set[str],
    engine: str,
) -> None:
    run = door("run_experiment.sh", engine, "1000", "0.5", "30", "1.0")
    run.until(moment)
    wait_until(lambda: and_begun <= set(run.programs()), f"{and_begun} among its programs")
    os.killpg(run.process.pid, signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    Watchdog("native", settings.stack_name).wait_for_last(print)
    nothing_left()
    # The watchdog ends last, shortly after it has released its lock.
    wait_until(lambda: not run.programs(), "end of all that the runner had begun")
    folder = run.folder
    assert read_run(folder)["outcome"] == "the harness was killed"
    assert "The harness was killed; ended" in (folder / "start.log").read_text()


def test_a_killed_runner_without_a_watchdog_is_cleared_up_after_by_the_next(
    door: Open, nothing_left: NothingLeft, settings: Settings
) -> None:
    first = door("run_experiment.sh", LIGHT, "1000", "30", "2", "1.0")
    first.until(r"^\[2/6\]")
    first.kill_with_watchdog()
    assert processes.members(settings.stack_name)
    assert first.record()["outcome"] == "unfinished"
    second = door("run_experiment.sh", LIGHT, "1000", "30", "2", "1.0")
    second.until(r"Cleared what a killed run left: \d+ processes \(.*broker")
    second.until(r"^\[1/6\]")
    second.signal(signal.SIGINT)
    assert second.wait() == 130
    nothing_left()
