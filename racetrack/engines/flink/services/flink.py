"""Service of Flink: its SQL gateway, which runs each job in a small cluster inside its own JVM."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from racetrack.config import Settings
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.stack import jvm, net
from racetrack.stack.service import Context, Launch

GATEWAY = "org.apache.flink.table.gateway.SqlGateway"
LOG4J = Path(__file__).parents[1] / "log4j2.properties"
# On few cores, G1 (Java's default garbage collector) would take too much CPU time from the job.
COLLECTOR = "-XX:+UseParallelGC"
# Address of Flink's internal endpoints, which nothing outside the process uses.
WITHIN = "127.0.0.1"
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


class Flink:
    """See `racetrack.stack.service.NativeService`."""

    name = "flink"
    parts = ("flink",)
    after = ()
    ready_within_s = 60.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"FLINK_PORT": FlinkSettings.of(settings).flink_port}

    def launch(self, context: Context) -> Launch:
        configuration = context.work / "conf"
        configuration.mkdir(exist_ok=True)
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in configured(context).items()]
        (configuration / "config.yaml").write_text("".join(lines))
        # Set the initial heap size to the maximum, as Flink's start scripts do for task managers
        # (ProcessMemoryUtils). A growing heap would cause a full collection before each growth.
        heap = FlinkSettings.of(context.settings).flink_heap
        return Launch(
            argv=[
                str(jvm.java()),
                *jvm.options(heap, context.work, context.settings),
                f"-Xms{heap}",
                COLLECTOR,
                jvm.LOG_GC_PAUSES,
                *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
                f"-Dlog4j2.configurationFile={LOG4J}",
                "-cp",
                jvm.class_path(context.parts["flink"] / "lib"),
                GATEWAY,
            ],
            env={"FLINK_CONF_DIR": str(configuration)},
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """Check that the gateway answers."""
        net.get_json(f"{_url(context.settings)}/info")

    def versions(self, context: Context) -> Mapping[str, str]:
        """Return the versions of Flink and of its Kafka connector."""
        jars = " ".join(path.name for path in (context.parts["flink"] / "lib").glob("*.jar"))
        names = {"flink": "flink-dist", "flink-kafka": "flink-sql-connector-kafka"}
        found = {part: re.search(rf"\b{jar}-(\S+)\.jar", jars) for part, jar in names.items()}
        return {part: match[1] for part, match in found.items() if match}


def configured(context: Context) -> dict[str, str]:
    """Return Flink's configuration where it differs from Flink's defaults."""
    settings = FlinkSettings.of(context.settings)
    return {
        "sql-gateway.endpoint.rest.address": net.host(settings),
        "sql-gateway.endpoint.rest.bind-address": settings.bind_address,
        "sql-gateway.endpoint.rest.port": str(settings.flink_port),
        # Sessions never expire. By default a session ends after ten idle minutes, and the classes
        # that its job needs are unloaded with it.
        "sql-gateway.session.idle-timeout": "0",
        "execution.target": "local",
        "rest.address": WITHIN,
        "rest.bind-address": WITHIN,
        "jobmanager.bind-host": WITHIN,
        "taskmanager.bind-host": WITHIN,
        "taskmanager.host": WITHIN,
        "io.tmp.dirs": str(context.work / "tmp"),
        # The jobs of eighteen views have several hundred channels between tasks, which need
        # buffers.
        "taskmanager.memory.network.min": "256m",
        "taskmanager.memory.network.max": "256m",
        "parallelism.default": str(settings.flink_parallelism),
        "taskmanager.numberOfTaskSlots": str(settings.flink_parallelism),
        **_mini_batches(settings.flink_mini_batch_ms),
        **_state(settings, context.work),
        "table.exec.sink.upsert-materialize": settings.flink_upsert_materialize,
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


def _url(settings: Settings) -> str:
    return f"http://{net.endpoint(net.host(settings), FlinkSettings.of(settings).flink_port)}"


SERVICE = Flink()
