"""Service of Spark: the program `racetrack/engines/spark/program`, which maintains the views."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from racetrack.engines.shared.java_program.service import TABLES, JavaProgram
from racetrack.engines.spark.services import sparkmaster
from racetrack.engines.spark.settings import SparkSettings
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.service import Context, Launch

# The connector to Kafka and its dependencies, which are not in Spark's distribution.
NOT_IN_SPARK = (
    "spark-sql-kafka-",
    "spark-token-provider-kafka-",
    "kafka-clients-",
    "commons-pool2-",
)


class _Spark(JavaProgram):
    """The program that maintains the views. It runs Spark's tasks itself, or is the driver of a
    cluster: of pods, or of one that the user provides."""

    @property
    def after(self) -> tuple[str, ...]:
        return (*super().after, sparkmaster.SERVICE.name)

    def launch(self, context: Context) -> Launch:
        settings = SparkSettings.of(context.settings)
        if settings.peer_spark_master:
            return self._in_pods(context, settings)
        if settings.spark_master_url:
            return self._elsewhere(context, settings)
        return super().launch(context)

    def _in_pods(self, context: Context, settings: SparkSettings) -> Launch:
        own = {
            "spark_heap": sparkmaster.DRIVER_HEAP,
            "spark_shuffle_partitions": settings.engine_replicas
            * settings.spark_shuffle_partitions,
        }
        launch = super().launch(replace(context, settings=settings.model_copy(update=own)))
        cores = sum(worker["cores"] for worker in sparkmaster.workers(settings))
        properties = sparkmaster.of_driver(settings, context.parts["spark"], cores)
        return _with_properties(launch, properties)

    def _elsewhere(self, context: Context, settings: SparkSettings) -> Launch:
        # This machine's address as seen from other machines: the executors there reach Kafka, the
        # registry and the driver at this address.
        here = settings.advertised_address
        peers = settings.model_copy(update={"peer_kafka": here, "peer_registry": here})
        launch = super().launch(replace(context, settings=peers))
        folder = Path(settings.spark_shared_folder, RUN_NAME)
        properties = {
            "spark.master": settings.spark_master_url,
            "spark.app.name": RUN_NAME,
            "spark.driver.host": here,
            "spark.driver.bindAddress": settings.bind_address,
            "spark.executor.memory": settings.spark_heap,
            "spark.executor.extraClassPath": _copy_program(
                context.parts["spark"], folder / "program"
            ),
            **({"spark.cores.max": settings.spark_cores} if settings.spark_cores else {}),
        }
        env = {**launch.env, "STATE_FOLDER": str(folder / "state")}
        return _with_properties(replace(launch, env=env), properties)


def _with_properties(launch: Launch, properties: Mapping[str, object]) -> Launch:
    """Return a launch with additional properties of Spark, which Spark reads from the JVM's
    options."""
    options = (f"-D{name}={value}" for name, value in properties.items())
    return replace(launch, argv=[launch.argv[0], *options, *launch.argv[1:]])


def _copy_program(part: Path, folder: Path) -> str:
    """Copy the classes that Spark's distribution lacks into a folder; return the class path."""
    jars = [jar for jar in (part / "lib").iterdir() if jar.name.startswith(NOT_IN_SPARK)]
    shutil.copytree(part / "classes", folder / "classes", dirs_exist_ok=True)
    copies = [shutil.copy(jar, folder) for jar in jars]
    return ":".join(map(str, (folder / "classes", *copies)))


SERVICE = _Spark(
    "spark",
    jar="spark-sql_2.13",
    peers=TABLES,
    options=sparkmaster.java_options,
    keeps_state=True,
    ready_within_s=180.0,
)
