"""Service of a TaskManager, which runs tasks for the JobManager at FLINK_JOBMANAGER."""

import socket
from collections.abc import Mapping

from racetrack import units
from racetrack.config import Settings
from racetrack.engines.flink import cluster
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.stack import net
from racetrack.stack.service import Context, Launch, NotReady

MAIN = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
FRAMEWORK_BYTES = 128 << 20  # part of the heap for Flink itself (Flink's default)


class TaskManager:
    """See `racetrack.stack.service.NativeService`."""

    name = "taskmanager"
    parts = ("flink",)
    after = ()
    ready_within_s = 120.0

    def ports(self, settings: Settings) -> Mapping[str, int]:  # noqa: ARG002
        return {}

    def launch(self, context: Context) -> Launch:
        heap = FlinkSettings.of(context.settings).flink_heap
        return cluster.launch(context, MAIN, configured(context), heap=heap, runs_jobs=True)

    def check(self, context: Context) -> None:
        """Check that this TaskManager has registered with the JobManager."""
        host = FlinkSettings.of(context.settings).flink_jobmanager
        url = f"http://{net.endpoint(host, cluster.REST_PORT)}/taskmanagers"
        answer = net.get_json(url)
        known = answer.get("taskmanagers", []) if isinstance(answer, dict) else []
        if socket.gethostname() not in [manager["id"] for manager in known]:
            raise NotReady("the JobManager does not know it")

    def versions(self, context: Context) -> Mapping[str, str]:  # noqa: ARG002
        return {}


def configured(context: Context) -> dict[str, str]:
    """Return the configuration where it differs from Flink's defaults."""
    settings = FlinkSettings.of(context.settings)
    return {
        **cluster.of_a_cluster(settings),
        "taskmanager.host": socket.gethostbyname(socket.gethostname()),
        "taskmanager.resource-id": socket.gethostname(),
        **_sizes(settings),
        **cluster.of_every_process(settings, context.work),
    }


def _sizes(settings: FlinkSettings) -> dict[str, str]:
    """Return the sizes that Flink's start scripts would compute. The heap has the size FLINK_HEAP;
    the sizes of memory outside the heap are Flink's defaults."""
    heap_bytes = units.parse_size_bytes(settings.flink_heap)
    return {
        "taskmanager.cpu.cores": str(float(settings.flink_parallelism)),
        "taskmanager.memory.framework.heap.size": f"{FRAMEWORK_BYTES}b",
        "taskmanager.memory.framework.off-heap.size": f"{FRAMEWORK_BYTES}b",
        "taskmanager.memory.task.heap.size": f"{max(heap_bytes - FRAMEWORK_BYTES, 0)}b",
        "taskmanager.memory.task.off-heap.size": "0b",
        # As much as in a cluster inside the gateway, except that RocksDB gets more memory.
        "taskmanager.memory.managed.size": "128m",
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "192m",
        "taskmanager.memory.jvm-overhead.max": "192m",
    }


SERVICE = TaskManager()
