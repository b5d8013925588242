"""Service of Spark: the program `racetrack/engines/spark/program`, which maintains the views."""

from pathlib import Path

from racetrack.engines.shared.java_program.service import TABLES, JavaProgram
from racetrack.engines.spark import recipe


def options(part: Path) -> list[str]:
    """Return the JVM options that Spark requires, and the option for its logging configuration."""
    return [f"@{part / recipe.OPTIONS}", f"-Dlog4j2.configurationFile={part / recipe.LOG4J}"]


SERVICE = JavaProgram(
    "spark",
    jar="spark-sql_2.13",
    peers=TABLES,
    options=options,
    keeps_state=True,
    ready_within_s=180.0,
)
