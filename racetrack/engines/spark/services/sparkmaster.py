"""Service of the master of a standalone cluster on Kubernetes, and code shared by all processes of
such a cluster: the master, the workers and the program, which is the driver."""

import shlex
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from racetrack.config import Settings
from racetrack.engines.spark import recipe
from racetrack.engines.spark.settings import SparkSettings
from racetrack.stack import jvm, net
from racetrack.stack.service import Context, Launch, NotReady

MASTER_PORT, PAGE_PORT = 7077, 8080
# Heap of the processes that run no tasks.
COORDINATION_HEAP, DRIVER_HEAP = "256m", "1g"
EXECUTORS_WITHIN_S = 120
CALLS_OF_WORKER = 60


class Master:
    """See `racetrack.stack.service.NativeService`."""

    name = "sparkmaster"
    parts = ("spark",)
    after = ()
    ready_within_s = 180.0

    def ports(self, settings: Settings) -> Mapping[str, int]:  # noqa: ARG002
        return {}

    def launch(self, context: Context) -> Launch:
        ports = ("--port", str(MASTER_PORT), "--webui-port", str(PAGE_PORT))
        return launch(context, "master.Master", *ports)

    def check(self, context: Context) -> None:
        """Check that all workers have registered. Otherwise Spark would keep the state of early
        tasks only on the workers that were there first."""
        settings = SparkSettings.of(context.settings)
        registered, wanted = len(workers(settings)), settings.engine_replicas
        if registered < wanted:
            raise NotReady(f"{registered} of {wanted} workers have registered")

    def versions(self, context: Context) -> Mapping[str, str]:  # noqa: ARG002
        return {}


def launch(context: Context, main: str, *arguments: str) -> Launch:
    """Return the launch of one of the main classes of Spark's standalone cluster."""
    part, home = context.parts["spark"], context.work / "home"
    properties = {
        "local.dir": context.work / "local",
        # A worker that tries to register retries about every 10 s at first, and only about every 60
        # s after the initial retries. So let all retries be initial ones.
        "worker.initialRegistrationRetries": CALLS_OF_WORKER,
        "worker.maxRegistrationRetries": CALLS_OF_WORKER,
    }
    home.mkdir(exist_ok=True)
    (home / "jars").unlink(missing_ok=True)
    (home / "jars").symlink_to(part / "lib")  # a worker looks here for the executors' classes
    return Launch(
        argv=[
            str(jvm.java()),
            *jvm.options(COORDINATION_HEAP, context.work, context.settings),
            *java_options(part),
            *(f"-Dspark.{name}={value}" for name, value in properties.items()),
            "-cp",
            jvm.class_path(part / "lib"),
            f"org.apache.spark.deploy.{main}",
            "--host",
            own_address(),
            *arguments,
        ],
        env={"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        cwd=context.work,
    )


def java_options(part: Path) -> list[str]:
    """Return the JVM options that Spark requires, and the option for its logging configuration."""
    return [f"@{part / recipe.OPTIONS}", *_logging(part)]


def of_driver(settings: SparkSettings, part: Path, cores: int) -> dict[str, object]:
    """Return Spark's properties for the program, which is the driver. The workers have `cores`
    cores in total.

    Each executor keeps the state of its partitions in a folder of its own, so all later tasks of
    these partitions must run on the same executor.
    """
    options = ["-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData", *_logging(part)]
    return {
        "spark.master": f"spark://{settings.peer_spark_master}:{MASTER_PORT}",
        "spark.app.name": "racetrack",
        "spark.driver.host": own_address(),
        "spark.driver.bindAddress": settings.bind_address,
        "spark.cores.max": cores,
        "spark.executor.memory": settings.spark_heap,
        "spark.executor.extraClassPath": part / "classes",
        "spark.executor.extraJavaOptions": shlex.join([*jvm.for_every_jvm(settings), *options]),
        "spark.scheduler.minRegisteredResourcesRatio": 1.0,
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{EXECUTORS_WITHIN_S}s",
        "spark.locality.wait": "1d",
        # Otherwise the first tasks, and their state, would be placed where the first rows are.
        "spark.shuffle.reduceLocality.enabled": "false",
    }


def workers(settings: SparkSettings) -> list[Mapping[str, Any]]:
    """Return the master's report on each worker.

    Raises:
        NotReady: the master does not answer.
    """
    page = net.get_json(f"http://{net.endpoint(settings.peer_spark_master, PAGE_PORT)}/json/")
    of_all = cast(Mapping[str, Any], page)["workers"]
    return [worker for worker in of_all if worker["state"] == "ALIVE"]


def own_address() -> str:
    """Return this pod's address."""
    return socket.gethostbyname(socket.gethostname())


def _logging(part: Path) -> list[str]:
    return [f"-Dlog4j2.configurationFile={part / recipe.LOG4J}"]


SERVICE = Master()
