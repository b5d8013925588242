"""End-to-end tests with a Flink that the user provides, a real session cluster: the check, and a job
that others cancel."""

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

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("flink")) as running:
        yield running


def test_the_check_lists_what_is_possible_and_names_a_wrong_url(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINK_GATEWAY_URL", cluster.url)
    result = CliRunner().invoke(cli.race, ["check"])
    assert result.exit_code == 0, result.output
    assert "can find the connectors" in result.output
    not_the_gateway = f"http://127.0.0.1:{cluster.rest_port}"
    with pytest.raises(SetupError, match="FLINK_GATEWAY_URL: can't open a session: "):
        ELSEWHERE.check(load({"FLINK_GATEWAY_URL": not_the_gateway}))


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
