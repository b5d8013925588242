"""End-to-end tests with a Flink that the user provides, a real session cluster: a wrong URL, and a
job that others cancel."""

from collections.abc import Callable, Iterator

import pytest

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
