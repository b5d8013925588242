"""What the tests on the real stack have in common of engines whose program writes to Redis."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from racetrack.config import Settings
from racetrack.stack.runtime import running_stack
from racetrack.workloads.ads.harness import VIEWS
from tests.e2e.shared import Door, check_answers, ended_well, run_folder, stack_up
from tests.run_json import read_run

WITHIN_S = 400


def _run(engine: str, *further: str, **settings: str) -> Door:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        words = ("1000", "8", "10", "1.0", "--workload", "ads", "--verify", *further)
        return Door("run_experiment.sh", engine, *words)


def verified(engine: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """`run.json` of an experiment that ended well, in which a client read, too."""
    return dict(ended_well(_run(engine, READS_PER_SECOND="2", **settings), WITHIN_S))


def check_right(run: Mapping[str, Any]) -> None:
    """Check that every view is right, that reads were answered, and that versions are recorded."""
    engine = run["engine"]
    views = run["verified"]["views"]
    assert {name: view["status"] for name, view in views.items()} == {
        view.name: "right" for view in VIEWS
    }
    assert views["campaign_windows"]["compared"] > 0
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"]
    assert run["results"]["processes"][engine]["cpu_s"] > 0
    assert {engine, "redis"} <= run["versions"].keys()
    check_answers(run)
    assert not any(read["errors"] for read in run["results"]["reads"])


def counted_after_a_kill(engine: str, **settings: str) -> tuple[int, int]:
    """How many events it counted that was killed between two writes, and how many there were."""
    door = _run(engine, "--fault", "kill:engine@12s", **settings)
    door.wait(WITHIN_S)
    run = read_run(run_folder(door.output))
    assert "verified" in run, door.output
    results = run["results"]
    return results["processed_pageviews"], results["published_pageviews"]


@contextmanager
def up(engine: str) -> Iterator[None]:
    """A stack that was put up by hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKLOAD", "ads")
        with stack_up(engine, WITHIN_S):
            yield


def listening(engine: str, settings: Settings) -> list[str]:
    """The addresses on which its processes listen."""
    found = running_stack(settings)
    assert found
    return [
        connection.laddr.ip.removeprefix("::ffff:")
        for pid in found[1].services[engine]
        for connection in psutil.Process(pid).net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
