"""A real Flink of the tests' own: a session cluster with one task manager, and its SQL gateway."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from racetrack import install
from racetrack.config import load
from racetrack.engines.flink.gateway import Gateway, Job, Refused, opened
from racetrack.stack import net
from racetrack.stack.service import Context, find_service
from tests.ports import free_ports
from tests.servers import running

HOST = "127.0.0.1"
READY_WITHIN_S = 90.0


@dataclass(frozen=True)
class Cluster:
    """A running Flink."""

    gateway_port: int
    rest_port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.gateway_port}"

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
    """Start the cluster; stop it at the end."""
    parts = install.ensure(["flink"], install.read_versions(), print)
    rpc, rest, gateway = free_ports(3)
    ports = f"jobmanager.rpc.port={rpc} rest.port={rest} blob.server.port=0"
    settings = load(
        {
            "BIND_ADDRESS": HOST,
            "FLINK_JOBMANAGER": HOST,
            "FLINK_PORT": str(gateway),
            "FLINK_HEAP": "1g",
            "FLINK_PROPERTIES": f"{ports} taskmanager.host={HOST} taskmanager.numberOfTaskSlots=2",
        }
    )
    launches = []
    for name in ("jobmanager", "taskmanager", "flink"):
        (folder / name).mkdir()
        launches.append(find_service(name).launch(Context(settings, folder / name, parts)))
    cluster = Cluster(gateway, rest)
    commands, is_ready = [launch.argv for launch in launches], partial(_is_ready, cluster)
    with running(commands, folder, is_ready, READY_WITHIN_S, launches[-1].env):
        yield cluster


def _is_ready(cluster: Cluster) -> bool:
    try:
        Gateway(cluster.url).close()
    except Refused:
        return False
    found = net.get_json(f"http://{HOST}:{cluster.rest_port}/overview")
    return isinstance(found, dict) and bool(found["slots-available"])
