"""Recipe of the installed component `spark`: Spark with its dependencies, and the program that
maintains the views."""

from pathlib import Path

from racetrack.engines.shared.java_program.recipe import UPSERT, ProgramRecipe

OPTIONS, LOG4J = "java.options", "log4j2.properties"  # JVM options, and logging configuration
RECIPE = ProgramRecipe(
    folder=Path(__file__).parent,
    title="Apache Spark",
    download_mb=292,
    shared=(UPSERT,),
    tests_need="what tests Spark's queries without Kafka",
    tests_download_mb=3,
    beside=(OPTIONS, LOG4J),
)
INSTALLS = RECIPE.installs
