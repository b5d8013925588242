"""The program in which Spark keeps the views (see racetrack/engines/spark/program)."""

from pathlib import Path

from racetrack.engines.shared.java_program.service import TABLES, JavaProgram
from racetrack.engines.spark import recipe


def options(part: Path) -> list[str]:
    """Return the options that Spark needs of the JVM, and its logging configuration."""
    return [f"@{part / recipe.OPTIONS}", f"-Dlog4j2.configurationFile={part / recipe.LOG4J}"]


SERVICE = JavaProgram(
    "spark",
    jar="spark-sql_2.13",
    peers=TABLES,
    options=options,
    keeps_state=True,
    ready_within_s=180.0,
)
