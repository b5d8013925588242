"""End-to-end tests with a Flink that the user provides: a real session cluster."""

import signal
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.config import load
from racetrack.engines.flink.elsewhere import ELSEWHERE
from racetrack.engines.flink.tests.cluster import Cluster, running_cluster
from racetrack.engines.shared.tests import elsewhere_e2e
from racetrack.errors import SetupError
from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

OpenDoor = Callable[..., Door]
NothingLeft = Callable[[], None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("flink")) as running:
        yield running


@pytest.fixture(autouse=True)
def provided(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all runs use the test's Flink."""
    monkeypatch.setenv("FLINK_GATEWAY_URL", cluster.url)


def test_the_check_lists_what_is_possible() -> None:
    result = CliRunner().invoke(cli.race, ["check"])
    assert result.exit_code == 0, result.output
    for done in ("can open a session", "can list jobs", "can find the connectors"):
        assert done in result.output


@pytest.mark.parametrize(
    ("url", "answer"),
    [("http://127.0.0.1:1", "can't open a session"), ("", "can't open a session: ")],
)
def test_a_wrong_url_is_named(cluster: Cluster, url: str, answer: str) -> None:
    wrong = url or f"http://127.0.0.1:{cluster.rest_port}"  # of the cluster, not of the gateway
    with pytest.raises(SetupError) as refused:
        ELSEWHERE.check(load({"FLINK_GATEWAY_URL": wrong}))
    (why,) = str(refused.value).splitlines()[1:]
    assert f"FLINK_GATEWAY_URL: {answer}" in why and "Check the address" in why


def test_a_run_is_verified_and_leaves_nothing(
    door: OpenDoor, cluster: Cluster, nothing_left: NothingLeft, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    run = elsewhere_e2e.begun(door, "flink", *elsewhere_e2e.BRIEF, "--verify")
    assert [job.name.startswith("racetrack_") for job in cluster.jobs()] == [True]
    assert run.wait() == 0, run.output
    nothing_left()
    assert cluster.jobs() == []
    record = elsewhere_e2e.check_followed(run, "FLINK_GATEWAY_URL")
    assert record["versions"]["flink"]
    assert "flink" not in record["results"]["processes"]


def test_a_job_that_others_cancel_ends_the_run(door: OpenDoor, cluster: Cluster) -> None:
    run = elsewhere_e2e.begun(door, "flink", *elsewhere_e2e.LONG)
    (job,) = cluster.jobs()
    cluster.fail(job)
    assert run.wait() == 1, run.output
    assert f"{job.id} is CANCELED" in read_run(run_folder(run.output))["outcome"]


@elsewhere_e2e.interrupted
def test_an_interrupted_run_leaves_nothing(
    door: OpenDoor, cluster: Cluster, nothing_left: NothingLeft, how: signal.Signals
) -> None:
    run = elsewhere_e2e.begun(door, "flink", *elsewhere_e2e.LONG)
    assert len(cluster.jobs()) == 1
    elsewhere_e2e.check_interrupted(run, how, cluster.jobs)
    nothing_left()
