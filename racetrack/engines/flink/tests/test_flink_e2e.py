"""End-to-end tests of Flink: a setting that is fast but wrong is detected, a killed Flink resumes,
the script works in Flink's SQL client, and errors are reported."""

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from racetrack.config import REPO, Settings
from racetrack.engines import find_engine
from racetrack.engines.contract import NoSuchView
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.stack.contract import Stack
from racetrack.stack.runtime import running_stack
from tests.e2e.shared import Door, ended_well, run_folder, stack_up
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

WITHIN_S = upsert_e2e.WITHIN_S


def test_verification_catches_what_is_fast_and_wrong() -> None:
    """With upsert-materialize=NONE, an older state of a row may arrive after a newer one if emails
    change while profiles are viewed. The verification must report such rows."""
    wrong = {"FLINK_UPSERT_MATERIALIZE": "NONE", "UPDATES_PER_SECOND": "300"}
    door = upsert_e2e.run("flink", 2_000, FLINK_PARALLELISM="2", **wrong)
    run_json = read_run(run_folder(door.output))
    assert upsert_e2e.statuses(door)["profile_views_enriched"] == "wrong", door.output
    assert run_json["outcome"] != "ok"
    assert door.process.returncode != 0
    assert any("FLINK_UPSERT_MATERIALIZE=NONE" in caveat for caveat in run_json["caveats"])


@pytest.mark.parametrize(
    ("workload", "guarantee"), [("shop", "exactly_once"), ("ads", "at_least_once")]
)
def test_a_killed_one_goes_on_from_its_last_checkpoint(workload: str, guarantee: str) -> None:
    """No event is lost, and none is counted twice, not even those after that checkpoint. With
    transactions, rows that were written after it are gone, also from the shop's ranked views."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLINK_CHECKPOINT_MS", "1000")
        patch.setenv("FLINK_GUARANTEE", guarantee)
        if workload == "shop":
            patch.setenv("UPDATES_PER_SECOND", "30")
            patch.setenv("DELETES_PER_SECOND", "5")
        words = f"flink 1000 5 15 1.0 --verify --workload {workload} --fault kill:engine@6s"
        door = Door("run_experiment.sh", *words.split())
        run = ended_well(door)
    assert {view["status"] for view in run["verified"]["views"].values()} == {"right"}
    log = (run_folder(door.output) / "stack" / "flink.log").read_text()
    assert re.search(r"Starting job \w+ from savepoint \S+/chk-[1-9]", log)


@pytest.fixture(scope="module")
def up() -> Iterator[Door]:
    """Start a stack with `race up`, without the demo; rows of the shop are updated and deleted."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in upsert_e2e.CHANGES.items():
            patch.setenv(name, value)
        with stack_up("flink", WITHIN_S) as door:
            yield door


def test_it_listens_on_loopback_only(up: Door, settings: Settings) -> None:
    listening = upsert_e2e.listening("flink", settings)
    assert listening
    assert set(listening) <= {"127.0.0.1", "::1"}


def test_the_script_can_be_pasted_into_flinks_own_client(
    up: Door, settings: Settings, wait_until: Callable[..., None]
) -> None:
    """Start the client that `./race up` prints, and paste the addresses that it prints and the
    script: every view is then correct."""
    lines = up.output.splitlines()
    client = next(line for line in lines if line.startswith("SQL client: "))
    addresses = [line for line in lines if line.startswith("CREATE TABLE at_")]
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
    upsert_e2e.check_stack_that_is_up()


def rows(stack: Stack, view: str) -> int:
    """Return the number of rows of a view; 0 while its job has not written any."""
    try:
        return int(find_engine("flink").read_view(stack, view).num_rows)
    except NoSuchView:
        return 0
