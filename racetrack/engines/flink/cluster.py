"""Configuration and start of Flink's processes: what the SQL gateway, the JobManager and the
TaskManagers have in common."""

import json
from collections.abc import Mapping
from pathlib import Path

from racetrack.engines.flink.settings import FlinkSettings
from racetrack.stack import jvm
from racetrack.stack.service import Context, Launch

LOG4J = Path(__file__).parent / "log4j2.properties"
# With few cores, Java's default garbage collector, G1, would take too much CPU time from the job.
COLLECTOR = "-XX:+UseParallelGC"
# Java packages that Flink's own start scripts open to Flink.
OPENED = (
    "java.lang",
    "java.lang.reflect",
    "java.net",
    "java.io",
    "java.nio",
    "java.text",
    "java.time",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "java.util.concurrent.locks",
)
GATEWAY = "org.apache.flink.table.gateway.SqlGateway"
# Flink's default ports in a cluster with several processes.
REST_PORT, RPC_PORT, BLOB_PORT = 8081, 6123, 6124
# Heap of a process that runs no part of the job.
COORDINATION_HEAP = "1g"


def launch(
    context: Context,
    main: str,
    configuration: Mapping[str, str],
    *,
    heap: str,
    runs_jobs: bool,
) -> Launch:
    """Return the launch of one of Flink's main classes, and write its configuration.

    If the process runs jobs, the initial heap size is the maximum, as Flink's start scripts do for
    TaskManagers (ProcessMemoryUtils). A growing heap would cause a full collection before each
    growth.
    """
    folder = context.work / "conf"
    # The gateway takes its folder only from an environment variable.
    arguments = [] if main == GATEWAY else ["--configDir", str(folder)]
    folder.mkdir(exist_ok=True)
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in configuration.items()]
    (folder / "config.yaml").write_text("".join(lines))
    return Launch(
        argv=[
            str(jvm.java()),
            *jvm.options(heap, context.work, context.settings),
            *([f"-Xms{heap}"] if runs_jobs else []),
            COLLECTOR,
            jvm.LOG_GC_PAUSES,
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            f"-Dlog4j2.configurationFile={LOG4J}",
            "-cp",
            jvm.class_path(context.parts["flink"] / "lib"),
            main,
            *arguments,
        ],
        env={"FLINK_CONF_DIR": str(folder)},
        cwd=context.work,
    )


def of_every_process(settings: FlinkSettings, work: Path) -> dict[str, str]:
    """Return the configuration of each process where it differs from Flink's defaults."""
    return {
        "io.tmp.dirs": str(work / "tmp"),
        # The jobs of eighteen views have several hundred channels between tasks, which need
        # buffers.
        "taskmanager.memory.network.min": "256m",
        "taskmanager.memory.network.max": "256m",
        "parallelism.default": str(settings.engine_replicas * settings.flink_parallelism),
        "taskmanager.numberOfTaskSlots": str(settings.flink_parallelism),
        **_mini_batches(settings.flink_mini_batch_ms),
        **_state(settings, work),
        "table.exec.sink.upsert-materialize": settings.flink_upsert_materialize,
        **settings.properties,
    }


def of_a_cluster(settings: FlinkSettings) -> dict[str, str]:
    """Return the addresses in a cluster with a JobManager at FLINK_JOBMANAGER."""
    return {
        "jobmanager.rpc.address": settings.flink_jobmanager,
        "jobmanager.rpc.port": str(RPC_PORT),
        "jobmanager.bind-host": settings.bind_address,
        "blob.server.port": str(BLOB_PORT),
        "rest.address": settings.flink_jobmanager,
        "rest.port": str(REST_PORT),
        "rest.bind-address": settings.bind_address,
        "taskmanager.bind-host": settings.bind_address,
        # On slow cores, deploying the tasks of eighteen views may take more than the default, 10 s.
        "pekko.ask.timeout": "60 s",
    }


def _mini_batches(every_ms: int) -> dict[str, str]:
    if not every_ms:
        return {}
    return {
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": f"{every_ms} ms",
        "table.exec.mini-batch.size": "50000",
    }


def _state(settings: FlinkSettings, work: Path) -> dict[str, str]:
    state: dict[str, str] = {"state.backend.type": settings.flink_state_backend}
    if settings.flink_state_backend == "rocksdb":
        state["taskmanager.memory.managed.size"] = settings.flink_heap
    if settings.flink_checkpoint_ms:
        state["execution.checkpointing.interval"] = f"{settings.flink_checkpoint_ms} ms"
        state["execution.checkpointing.storage"] = "filesystem"
        state["execution.checkpointing.dir"] = (work / "checkpoints").as_uri()
    return state
