"""A real Flink of the tests' own: a session cluster with one task manager, and its SQL gateway.

`python -m racetrack.engines.flink.tests.cluster` starts it, and prints the setting for a run.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from racetrack import install
from racetrack.engines.flink.cluster import GATEWAY, LOG4J, OPENED
from racetrack.engines.flink.gateway import Gateway, Job, Refused, opened
from racetrack.stack import jvm, net
from tests.ports import free_ports
from tests.servers import print_settings, running

ENTRY = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASKS = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
HEAPS = {ENTRY: "384m", TASKS: "1g", GATEWAY: "512m"}
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
    """Start the cluster; stop it at the end."""
    part = install.ensure(["flink"], install.read_versions(), print)["flink"]
    rpc, rest, gateway = free_ports(3)
    conf = folder / "conf"
    conf.mkdir()
    lines = [
        f"{key}: {json.dumps(value)}\n" for key, value in _settings(rpc, rest, gateway).items()
    ]
    (conf / "config.yaml").write_text("".join(lines))
    commands = []
    for program, heap in HEAPS.items():
        argv = [str(jvm.java()), f"-Xmx{heap}", "-XX:+UseParallelGC"]
        argv += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        argv += [f"-Dlog4j2.configurationFile={LOG4J}", "-cp", jvm.class_path(part / "lib")]
        options = [] if program == GATEWAY else ["--configDir", str(conf)]
        commands.append([*argv, program, *options])
    cluster = Cluster(gateway, rest)
    environment = {"FLINK_CONF_DIR": str(conf), "FLINK_LIB_DIR": str(part / "lib")}
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


def _settings(rpc_port: int, rest_port: int, gateway_port: int) -> dict[str, str]:
    host = "127.0.0.1"
    return {
        "jobmanager.rpc.address": host,
        "jobmanager.rpc.port": str(rpc_port),
        "jobmanager.bind-host": host,
        "jobmanager.memory.heap.size": HEAPS[ENTRY],
        "rest.address": host,
        "rest.bind-address": host,
        "rest.port": str(rest_port),
        "taskmanager.host": host,
        "taskmanager.bind-host": host,
        "taskmanager.numberOfTaskSlots": "2",
        "taskmanager.cpu.cores": "2.0",
        "taskmanager.memory.task.heap.size": "768m",
        "taskmanager.memory.task.off-heap.size": "0",
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "192m",
        "taskmanager.memory.jvm-overhead.max": "192m",
        "taskmanager.memory.managed.size": "64m",
        "taskmanager.memory.network.min": "256m",
        "taskmanager.memory.network.max": "256m",
        "parallelism.default": "1",
        "execution.target": "remote",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "100 ms",
        "table.exec.mini-batch.size": "50000",
        "sql-gateway.endpoint.rest.address": host,
        "sql-gateway.endpoint.rest.bind-address": host,
        "sql-gateway.endpoint.rest.port": str(gateway_port),
    }


def main() -> None:
    """Start the cluster, print the setting, and stop it when the input ends."""
    with tempfile.TemporaryDirectory() as name, running_cluster(Path(name)) as cluster:
        print_settings({"FLINK_GATEWAY_URL": cluster.url})


if __name__ == "__main__":
    main()
