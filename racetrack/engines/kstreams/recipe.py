"""Recipe of the installed component `kstreams`: Kafka Streams with its dependencies, and the
program that maintains the views."""

from pathlib import Path

from racetrack.engines.shared.java_program.recipe import UPSERT, ProgramRecipe

RECIPE = ProgramRecipe(
    folder=Path(__file__).parent,
    title="Kafka Streams",
    download_mb=102,
    shared=(UPSERT,),
    tests_need="what tests Kafka Streams' topologies without Kafka",
    tests_download_mb=4,
)
INSTALLS = RECIPE.installs
