"""Recipe of the installed component `storm`: Apache Storm with its dependencies, and the program
that runs its topology."""

from pathlib import Path

from racetrack.engines.shared.java_program.recipe import REDIS_SINK, ProgramRecipe

RECIPE = ProgramRecipe(
    folder=Path(__file__).parent,
    title="Apache Storm",
    download_mb=167,
    shared=(REDIS_SINK,),
    tests_need="what tests Storm's stages, and what writes to Redis",
    tests_download_mb=3,
)
INSTALLS = RECIPE.installs
