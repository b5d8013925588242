"""Verified experiments on a shop whose rows are updated and deleted, and checks of their
results."""

from collections.abc import Callable, Iterable
from ipaddress import ip_address

import psutil
import pytest

from racetrack.config import Settings
from racetrack.engines import find_engine
from racetrack.stack.runtime import running_stack
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import (
    Door,
    check_answers,
    check_views_followed,
    purchases_without_marks,
    run_folder,
    write_odd_rows,
)
from tests.run_json import read_run

WITHIN_S = 400
TRACER_EVENTS_PER_S = 12
CHANGES = {
    "UPDATES_PER_SECOND": "30",
    "DELETES_PER_SECOND": "5",
    "TRACER_EVENTS_PER_SECOND": str(TRACER_EVENTS_PER_S),
    "READS_PER_SECOND": "6",
}


def run(
    engine: str,
    words: str,
    meanwhile: Callable[[Door], object] = lambda _: None,
    /,
    **settings: str,
) -> Door:
    """Run a verified experiment to its end; `words` are its arguments after the engine."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        door = Door("run_experiment.sh", engine, *words.split(), "--verify")
        meanwhile(door)
        door.wait(WITHIN_S)
    return door


def run_with_changes(engine: str, events_per_s: int, further: str = "", **settings: str) -> Door:
    """Run one on a shop in which rows are odd, updated and deleted."""
    words = f"{events_per_s} 15 10 1.0 {further}"
    return run(engine, words, write_odd_rows, **CHANGES | settings)


def statuses(door: Door) -> dict[str, str]:
    """Return each view's status in the verification."""
    views = read_run(run_folder(door.output))["verified"]["views"]
    return {name: view["status"] for name, view in views.items()}


def check_all_are_right(door: Door, workload: str = "shop") -> None:
    right = {view.name: "right" for view in find_workload(workload).views}
    assert statuses(door) == right, door.output


def check_every_view_is_right(door: Door) -> None:
    """Fail unless every view holds what it should after updates and deletions."""
    check_all_are_right(door)
    folder = run_folder(door.output)
    run = read_run(folder)
    verified = run["verified"]
    assert verified["drained_after_s"] < verified["drain_within_s"]
    assert verified["end_offsets"] == run["measured"]["end_offsets"]
    assert verified["source_rows"]["pageviews"] == sum(verified["end_offsets"])
    assert all(view["compared"] > 0 for view in verified["views"].values())
    # Rows were deleted: there were 1,000 purchases at first, and each second added three.
    assert purchases_without_marks(run, folder) < 1_000


def check_views_are_followed_and_read(door: Door, *, may_fail: bool = False) -> None:
    """Fail unless tracer events were seen in the views, and a client read them without an error, or
    after a kill with errors only while the engine was dead."""
    folder = run_folder(door.output)
    run = read_run(folder)
    check_views_followed(run, folder, TRACER_EVENTS_PER_S)
    check_answers(run)
    assert may_fail or not any(read["errors"] for read in run["results"]["reads"])


def check_progress_came_while_it_ran(door: Door, engine: str, updates: int) -> None:
    """Fail unless the engine reported progress more than `updates` times, and counted all
    pageviews."""
    folder = run_folder(door.output)
    assert len((folder / f"{engine}_sample_dt.log").read_text().splitlines()) > updates
    results = read_run(folder)["results"]
    assert results["processed_events"] == results["published_events"]
    assert 0 < results["dt_ms"]["p50"] < 60_000
    assert results["processes"][find_engine(engine).services[0]]["cpu_s"] > 0


def check_stack_that_is_up() -> None:
    """Fail unless every view of the running stack is right."""
    verified = Door("race", "verify")
    assert verified.wait(WITHIN_S) == 0, verified.output
    assert "every view is right" in verified.output


def listening(engine: str, settings: Settings) -> list[str]:
    """Return the addresses on which the processes of the engine listen."""
    found = running_stack(settings)
    assert found
    return [
        connection.laddr.ip.removeprefix("::ffff:")
        for pid in found[1].services[engine]
        for connection in psutil.Process(pid).net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    ]


def check_loopback_only(services: Iterable[str], settings: Settings) -> None:
    """Fail unless these services listen, and on addresses of this machine alone."""
    addresses = {address for service in services for address in listening(service, settings)}
    assert addresses
    assert all(ip_address(address).is_loopback for address in addresses), addresses
