"""The part `spark`: Spark with all that it brings, and the program that keeps the views."""

from pathlib import Path

from racetrack.engines.shared.java_program.recipe import UPSERT, ProgramRecipe

OPTIONS, LOG4J = "java.options", "log4j2.properties"  # options of the JVM, and its logging
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
