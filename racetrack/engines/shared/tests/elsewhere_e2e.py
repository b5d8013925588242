"""Checks for the end-to-end tests of engines that the user provides, the same for all such engines.

Each test module sets its engine's address in a fixture with `autouse`, so that all its runs use
that engine.
"""

import signal
from collections.abc import Callable, Collection
from typing import Any

import psutil
import pytest

from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run
from tests.waiting import wait_until

BRIEF, LONG = ("500", "5", "5", "1.0"), ("500", "60", "5", "1.0")
interrupted = pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])


def begun(door: Callable[..., Door], engine: str, *words: str) -> Door:
    """Start an experiment; return it at the start of step 4, in which the engine settles."""
    run = door("run_experiment.sh", engine, *words)
    run.until(r"^\[4/")
    return run


def check_interrupted(
    run: Door, how: signal.Signals, left: Callable[[], Collection[object]]
) -> None:
    """Interrupt an experiment. Fail unless all that it created in the engine is removed soon."""
    run.signal(how)
    assert run.wait() == (130 if how is signal.SIGINT else -9), run.output
    wait_until(lambda: not left(), "end of all that the run made", every_s=0.5)


def check_followed(run: Door, setting: str) -> dict[str, Any]:
    """Fail unless all events were counted, the views' lag was measured, and the engine's cost is
    blank. Return `run.json`."""
    record = read_run(run_folder(run.output))
    assert record["outcome"] == "ok"
    (caveat,) = [each for each in record["caveats"] if f"it ran at {setting}" in each]
    assert "so they are blank" in caveat
    results = record["results"]
    assert results["engine"] is None and record.get("engine_services", ()) in ((), [])
    assert results["processed_pageviews"] == results["published_pageviews"] > 3_000
    assert all(view["lag_p99_ms"] is not None for view in results["views"])
    return record


def check_read(record: dict[str, Any]) -> None:
    """Fail unless a client read the views without an error."""
    reads = record["results"]["reads"]
    assert any(read["age"] for read in reads)
    assert not any(read["errors"] for read in reads)


def command_lines() -> str:
    """Return the arguments of all processes of the machine."""
    found = (each.info["cmdline"] or () for each in psutil.process_iter(["cmdline"]))
    return "\n".join(map(" ".join, found))


def check_secret(run: Door, arguments: str, secret: str) -> None:
    """Fail if the secret is in a file of the run, in its output, or in arguments of processes."""
    files = [path for path in run_folder(run.output).rglob("*") if path.is_file()]
    assert [path for path in files if secret in path.read_text(errors="replace")] == []
    assert secret not in arguments + run.output
