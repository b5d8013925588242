"""The program in which Spark keeps the views (see racetrack/engines/spark/program)."""

from pathlib import Path

from racetrack.config import Settings
from racetrack.engines.shared.java_program.service import TABLES, Program
from racetrack.engines.spark import recipe
from racetrack.engines.spark.settings import SparkSettings


def heap(settings: Settings) -> str:
    """That of its one process."""
    return SparkSettings.of(settings).spark_heap


def told(settings: Settings) -> dict[str, str]:
    """What the program is told in every runtime."""
    own = SparkSettings.of(settings)
    return {
        "WORKLOAD": settings.workload,
        "SPARK_TRIGGER_MS": str(own.spark_trigger_ms),
        "SPARK_CORES": str(own.spark_cores),
        "SPARK_SHUFFLE_PARTITIONS": str(own.spark_shuffle_partitions),
        "SPARK_STATE_STORE": own.spark_state_store,
        "SPARK_AFTER_A_KILL": own.spark_after_a_kill,
    }


def options(part: Path) -> list[str]:
    """What Spark asks of Java, and what it logs."""
    return [f"@{part / recipe.OPTIONS}", f"-Dlog4j2.configurationFile={part / recipe.LOG4J}"]


SERVICE = Program(
    "spark",
    "spark-sql_2.13",
    heap,
    told,
    TABLES,
    options=options,
    keeps_state=True,
    ready_within_s=180.0,
)
