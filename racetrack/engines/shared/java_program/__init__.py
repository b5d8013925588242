"""Shared by engines that are Java programs of ours: their recipe, their service, and in `src/` the
Java sources that each of them contains."""

# Files that the image of such a service needs.
FILES = (
    "racetrack/engines/shared/__init__.py",
    "racetrack/engines/shared/java_program/__init__.py",
    "racetrack/engines/shared/java_program/recipe.py",
    "racetrack/engines/shared/java_program/service.py",
)
