"""Flink on the real stack: every view right after updates and deletions, and found wrong where it
is told to be fast instead; by hand in its own SQL client; what fails is said."""

import re
import subprocess
from collections.abc import Callable, Iterator

import psutil
import pytest

from racetrack.config import REPO, Settings
from racetrack.engines import find_engine
from racetrack.engines.contract import DemoError, NoSuchView
from racetrack.engines.flink.gateway import Gateway
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.stack.contract import Stack
from racetrack.stack.runtime import running_stack
from racetrack.workloads.shop.catalogue import VIEWS
from tests.e2e.shared import (
    Door,
    check_answers,
    check_views_followed,
    ended_well,
    purchases_without_marks,
    run_folder,
    stack_up,
    write_odd_rows,
)
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

TRACER_EVENTS_PER_S = 12
CHANGES = {
    "UPDATES_PER_SECOND": "30",
    "DELETES_PER_SECOND": "5",
    "TRACER_EVENTS_PER_SECOND": str(TRACER_EVENTS_PER_S),
    "READS_PER_SECOND": "6",
}
RUN = ("run_experiment.sh", "flink", "2000", "15", "10", "1.0", "--verify")
RUN_ON_ADS = (*RUN[:2], "1000", "5", "15", "1.0", "--verify", "--workload", "ads")
WITHIN_S = 400


def run(**settings: str) -> Door:
    """A verified experiment in which rows of the shop change and go."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (CHANGES | settings).items():
            patch.setenv(name, value)
        door = Door(*RUN)
        write_odd_rows(door)
        door.wait(WITHIN_S)
    return door


@pytest.fixture(scope="module")
def finished() -> Door:
    """With tasks side by side, which may overtake each other."""
    door = run(FLINK_PARALLELISM="2")
    ended_well(door)
    return door


def test_every_view_is_right_after_updates_and_deletions(finished: Door) -> None:
    run = read_run(run_folder(finished.output))
    verified = run["verified"]
    assert {name: view["status"] for name, view in verified["views"].items()} == {
        view.name: "right" for view in VIEWS
    }, finished.output
    for name, view in verified["views"].items():
        assert view["compared"] > 0, name
    # The shop began with 1,000 purchases, and three a second came.
    assert purchases_without_marks(run, run_folder(finished.output)) < 1_000


def test_its_views_are_followed_by_their_marks(finished: Door) -> None:
    folder = run_folder(finished.output)
    check_views_followed(read_run(folder), folder, TRACER_EVENTS_PER_S)


def test_its_views_are_read_by_a_client_that_keeps_them(finished: Door) -> None:
    run = read_run(run_folder(finished.output))
    check_answers(run)
    assert not any(read["errors"] for read in run["results"]["reads"])


def test_its_progress_came_while_it_ran(finished: Door) -> None:
    """Not at checkpoints, of which there are none, and not at the end."""
    folder = run_folder(finished.output)
    lines = (folder / "flink_sample_dt.log").read_text().splitlines()
    assert len(lines) > 50
    run = read_run(folder)
    assert run["results"]["processed_pageviews"] == run["results"]["published_pageviews"]
    assert 0 < run["results"]["dt_ms"]["p50"] < 60_000


def test_what_was_measured_is_its_own(finished: Door) -> None:
    run = read_run(run_folder(finished.output))
    assert run["results"]["processes"]["flink"]["cpu_s"] > 0
    assert {"flink", "flink-kafka"} <= set(run["versions"])


def test_it_leaves_nothing_behind(finished: Door, nothing_left: Callable[[], None]) -> None:
    nothing_left()


def test_verification_catches_what_is_fast_and_wrong() -> None:
    """The trap of upsert-materialize=NONE: emails change while profiles are viewed, and the old
    state of a row may come after the new one."""
    door = run(FLINK_UPSERT_MATERIALIZE="NONE", FLINK_PARALLELISM="2", UPDATES_PER_SECOND="300")
    run_json = read_run(run_folder(door.output))
    wrong = {
        name for name, view in run_json["verified"]["views"].items() if view["status"] == "wrong"
    }
    assert "profile_views_enriched" in wrong, door.output
    assert run_json["outcome"] != "ok"
    assert door.process.returncode != 0
    assert any("FLINK_UPSERT_MATERIALIZE=NONE" in caveat for caveat in run_json["caveats"])


def test_a_killed_one_goes_on_from_its_last_checkpoint() -> None:
    """And counts nothing twice that came after it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLINK_CHECKPOINT_MS", "1000")
        door = Door(*RUN_ON_ADS, "--fault", "kill:engine@6s")
        run = ended_well(door)
    assert {view["status"] for view in run["verified"]["views"].values()} == {"right"}
    log = (run_folder(door.output) / "stack" / "flink.log").read_text()
    assert re.search(r"Starting job \w+ from savepoint \S+/chk-[1-9]", log)


@pytest.fixture(scope="module")
def up() -> Iterator[Door]:
    """A stack that was put up by hand; the demo is not loaded yet. Rows change and go."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CHANGES.items():
            patch.setenv(name, value)
        with stack_up("flink", WITHIN_S) as door:
            yield door


def test_a_refused_statement_comes_with_its_cause(up: Door, settings: Settings) -> None:
    url = f"http://{settings.reach_address}:{FlinkSettings.of(settings).flink_port}"
    with Gateway(url) as gateway, pytest.raises(DemoError) as refused:
        gateway.run_all(["CREATE TABLE a (b INT)", "SELECT nothing FROM nowhere"])
    assert "Object 'nowhere' not found" in str(refused.value)
    assert "SELECT nothing FROM nowhere" in str(refused.value)


def test_it_listens_on_loopback_only(up: Door, settings: Settings) -> None:
    found = running_stack(settings)
    assert found
    listening = {
        connection.laddr.ip
        for pid in found[1].services["flink"]
        for connection in psutil.Process(pid).net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert listening


def test_the_script_can_be_pasted_into_flinks_own_client(
    up: Door, settings: Settings, wait_until: Callable[..., None]
) -> None:
    """As `./race up` says it: the client, the addresses, the script; then every view is right."""
    said = up.output.splitlines()
    client = next(line for line in said if line.startswith("SQL client: "))
    addresses = [line for line in said if line.startswith("CREATE TABLE at_")]
    assert len(addresses) == 3
    script = (REPO / "scripts" / "demo.flink.sql").read_text()
    typed = "\n".join([*addresses, script, "SHOW TABLES;", "QUIT;", ""])
    done = subprocess.run(
        client.removeprefix("SQL client: ").split(),
        input=typed,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert "[ERROR]" not in done.stdout, done.stdout
    assert "Job ID" in done.stdout, done.stdout
    found = running_stack(settings)
    assert found
    wait_until(lambda: rows(found[0], "item_summary") > 900, "items", WITHIN_S)
    verified = Door("race", "verify")
    assert verified.wait(WITHIN_S) == 0, verified.output
    assert "every view is right" in verified.output


def rows(stack: Stack, view: str) -> int:
    """How many rows a view has; none while its job has written nothing yet."""
    try:
        return int(find_engine("flink").read_view(stack, view).num_rows)
    except NoSuchView:
        return 0
