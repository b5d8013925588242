"""Runs against a Flink that the user provides: a real session cluster, started by the test."""

import signal
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.config import load
from racetrack.engines.flink.elsewhere import ELSEWHERE
from racetrack.engines.flink.tests.cluster import Cluster, running_cluster
from racetrack.errors import SetupError
from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

NothingLeft = Callable[[], None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("flink")) as running:
        yield running


@pytest.fixture
def flink_door(
    door: Callable[..., Door], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Door]:
    """`./run_experiment.sh flink …` with FLINK_GATEWAY_URL at the test's Flink."""
    monkeypatch.setenv("FLINK_GATEWAY_URL", cluster.url)

    def open_door(*arguments: str) -> Door:
        return door("run_experiment.sh", "flink", *arguments)

    return open_door


def test_the_check_lists_what_is_possible(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINK_GATEWAY_URL", cluster.url)
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
    flink_door: Callable[..., Door],
    cluster: Cluster,
    nothing_left: NothingLeft,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    run = flink_door("500", "5", "5", "1.0", "--verify")
    run.until(r"^\[4/")
    assert [job.name.startswith("racetrack_") for job in cluster.jobs()] == [True]
    assert run.wait() == 0, run.output
    nothing_left()
    assert cluster.jobs() == []
    record = read_run(run_folder(run.output))
    assert record["outcome"] == "ok"
    assert record["versions"]["flink"]
    assert any("it ran at FLINK_GATEWAY_URL" in caveat for caveat in record["caveats"])
    results = record["results"]
    assert results["engine"] is None and "flink" not in results["processes"]
    assert results["processed_pageviews"] == results["published_pageviews"] > 3_000
    assert all(view["lag_p99_ms"] is not None for view in results["views"])


def test_a_job_that_others_cancel_ends_the_run(
    flink_door: Callable[..., Door], cluster: Cluster
) -> None:
    run = flink_door("500", "60", "5", "1.0")
    run.until(r"^\[4/")
    (job,) = cluster.jobs()
    cluster.fail(job)
    assert run.wait() == 1, run.output
    assert f"{job.id} is CANCELED" in read_run(run_folder(run.output))["outcome"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(
    flink_door: Callable[..., Door],
    cluster: Cluster,
    nothing_left: NothingLeft,
    how: signal.Signals,
) -> None:
    run = flink_door("500", "60", "5", "1.0")
    run.until(r"^\[4/")
    assert len(cluster.jobs()) == 1
    run.signal(how)
    assert run.wait() == (130 if how is signal.SIGINT else -9), run.output
    wait_until(lambda: not cluster.jobs(), "job is gone", 40, 0.5)
    nothing_left()
