"""Service of Spark: the program `racetrack/engines/spark/program`, which maintains the views."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from racetrack.engines.shared.java_program.service import TABLES, JavaProgram
from racetrack.engines.spark import recipe
from racetrack.engines.spark.settings import SparkSettings
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.service import Context, Launch

# The connector to Kafka and what it needs, which are not in Spark's distribution.
NOT_IN_SPARK = (
    "spark-sql-kafka-",
    "spark-token-provider-kafka-",
    "kafka-clients-",
    "commons-pool2-",
)


def options(part: Path) -> list[str]:
    """Return the JVM options that Spark requires, and the option for its logging configuration."""
    return [f"@{part / recipe.OPTIONS}", f"-Dlog4j2.configurationFile={part / recipe.LOG4J}"]


class _Spark(JavaProgram):
    """The program, which is the driver of a cluster elsewhere if SPARK_MASTER_URL is set."""

    def launch(self, context: Context) -> Launch:
        settings = SparkSettings.of(context.settings)
        if not settings.spark_master_url:
            return super().launch(context)
        # Other machines use the same addresses of Kafka and the registry.
        here = settings.advertised_address
        peers = settings.model_copy(update={"peer_kafka": here, "peer_registry": here})
        launch = super().launch(replace(context, settings=peers))
        folder = Path(settings.spark_shared_folder, RUN_NAME)
        program = _copy_program(context.parts["spark"], folder / "program")
        return replace(
            launch,
            argv=[launch.argv[0], *_properties(settings, program), *launch.argv[1:]],
            env={**launch.env, "STATE_FOLDER": str(folder / "state")},
        )


def _properties(settings: SparkSettings, class_path: str) -> list[str]:
    """Return the JVM options that make the program the driver of a cluster. Spark reads them."""
    cores = {"spark.cores.max": settings.spark_cores} if settings.spark_cores else {}
    properties: Mapping[str, object] = {
        "spark.master": settings.spark_master_url,
        "spark.app.name": RUN_NAME,
        "spark.driver.host": settings.advertised_address,
        "spark.driver.bindAddress": settings.bind_address,
        "spark.executor.memory": settings.spark_heap,
        "spark.executor.extraClassPath": class_path,
        **cores,
    }
    return [f"-D{name}={value}" for name, value in properties.items()]


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
    options=options,
    keeps_state=True,
    ready_within_s=180.0,
)
