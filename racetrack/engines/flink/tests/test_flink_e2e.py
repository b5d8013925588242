"""End-to-end tests of Flink: a setting that is fast but wrong is detected, a killed Flink resumes,
the script works in Flink's SQL client, and errors of a Flink that the user provides are named."""

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence

import pytest

from racetrack.config import REPO, Settings, load
from racetrack.engines import find_engine
from racetrack.engines.contract import NoSuchView
from racetrack.engines.flink.elsewhere import ELSEWHERE
from racetrack.engines.flink.tests.cluster import Cluster, running_cluster
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.errors import SetupError
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
    door = upsert_e2e.run_with_changes("flink", 2_000, FLINK_PARALLELISM="2", **wrong)
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
    settings = {"FLINK_CHECKPOINT_MS": "1000", "FLINK_GUARANTEE": guarantee}
    if workload == "shop":
        settings |= {"UPDATES_PER_SECOND": "30", "DELETES_PER_SECOND": "5"}
    words = f"1000 5 15 1.0 --workload {workload} --fault kill:engine@6s"
    door = upsert_e2e.run("flink", words, **settings)
    ended_well(door)
    upsert_e2e.check_all_are_right(door, workload)
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
    upsert_e2e.check_loopback_only(["flink"], settings)


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
    done = typed_into(client.removeprefix("SQL client: ").split(), typed, WITHIN_S)
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


def typed_into(
    client: Sequence[str], text: str, within_s: float
) -> "subprocess.CompletedProcess[str]":
    """Run a client with this text as its input, and return its output."""
    return subprocess.run(
        client, input=text, capture_output=True, text=True, timeout=within_s, check=False
    )


# ---- A Flink that the user provides: a real session cluster --------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("flink")) as running:
        yield running


def test_the_check_names_a_url_of_the_cluster_instead_of_the_gateway(cluster: Cluster) -> None:
    with pytest.raises(SetupError, match="FLINK_GATEWAY_URL: can't open a session: "):
        ELSEWHERE.check(load({"FLINK_GATEWAY_URL": f"http://127.0.0.1:{cluster.rest_port}"}))


def test_a_job_that_others_cancel_ends_the_run(
    door: Callable[..., Door], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINK_GATEWAY_URL", cluster.url)
    run = door("run_experiment.sh", "flink", "500", "60", "5", "1.0")
    run.until(r"^\[4/")
    (job,) = cluster.jobs()
    cluster.fail(job)
    assert run.wait() == 1, run.output
    assert f"{job.id} is CANCELED" in read_run(run_folder(run.output))["outcome"]
