"""Recipe of the installed component `apex`: Apache Apex with its dependencies, and the program that
runs its application."""

from pathlib import Path

from racetrack.engines.shared.java_program.recipe import REDIS_SINK, ProgramRecipe

RECIPE = ProgramRecipe(
    folder=Path(__file__).parent,
    title="Apache Apex",
    download_mb=60,
    shared=(REDIS_SINK,),
    tests_need="what tests Apex' operators",
    tests_download_mb=3,
)
INSTALLS = RECIPE.installs
