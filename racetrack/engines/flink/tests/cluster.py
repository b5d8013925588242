"""A real Flink of the tests' own: a session cluster with one task manager, and its SQL gateway.

`python -m racetrack.engines.flink.tests.cluster` starts it, and prints the setting for a run.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from racetrack import install
from racetrack.config import load
from racetrack.engines.flink.cluster import GATEWAY, launch
from racetrack.engines.flink.gateway import Gateway, Job, Refused, opened
from racetrack.engines.flink.services import flink, jobmanager, taskmanager
from racetrack.stack import net
from racetrack.stack.service import Context
from tests.ports import free_ports
from tests.servers import print_settings, running

HOST = "127.0.0.1"
HEAPS = {jobmanager.MAIN: "384m", taskmanager.MAIN: "1g", GATEWAY: "512m"}
READY_WITHIN_S = 90.0


@dataclass(frozen=True)
class Cluster:
    """A running Flink."""

    gateway_port: int
    rest_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.gateway_port}"

    def jobs(self) -> list[Job]:
        """Return the jobs that have not ended."""
        with opened(self.url) as gateway:
            found = gateway.jobs()
        return [job for job in found if job.status not in ("CANCELED", "FAILED", "FINISHED")]

    def fail(self, job: Job) -> None:
        """Cancel a job, as another user of the cluster might do."""
        with opened(self.url) as gateway:
            gateway.run(f"STOP JOB '{job.id}'")


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Start the cluster, whose processes share one configuration; stop it at the end."""
    part = install.ensure(["flink"], install.read_versions(), print)["flink"]
    rpc, rest, gateway = free_ports(3)
    given = {"FLINK_JOBMANAGER": HOST, "FLINK_PORT": str(gateway), "FLINK_HEAP": "1g"}
    context = Context(load(given), folder, {"flink": part})
    configuration = {
        **flink.configured(context),
        **taskmanager.configured(context),
        "jobmanager.rpc.port": str(rpc),
        "blob.server.port": "0",
        "rest.port": str(rest),
        "taskmanager.host": HOST,
        "taskmanager.numberOfTaskSlots": "2",
    }
    commands = [
        launch(context, main, configuration, heap=heap, runs_jobs=False).argv
        for main, heap in HEAPS.items()
    ]
    cluster = Cluster(gateway, rest)
    environment = {"FLINK_CONF_DIR": str(folder / "conf"), "FLINK_LIB_DIR": str(part / "lib")}
    is_ready = partial(_is_ready, cluster)
    with running(commands, folder, is_ready, READY_WITHIN_S, environment):
        yield cluster


def _is_ready(cluster: Cluster) -> bool:
    try:
        Gateway(cluster.url).close()
    except Refused:
        return False
    found = net.get_json(f"http://127.0.0.1:{cluster.rest_port}/overview")
    return isinstance(found, dict) and bool(found["slots-available"])


def main() -> None:
    """Start the cluster, print the setting, and stop it when the input ends."""
    with tempfile.TemporaryDirectory() as name, running_cluster(Path(name)) as cluster:
        print_settings({"FLINK_GATEWAY_URL": cluster.url})


if __name__ == "__main__":
    main()
