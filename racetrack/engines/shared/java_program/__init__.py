"""Code shared by engines that run as Java programs written for this project: the installation
recipe, the service, and in `src/` Java sources that are compiled into each program."""

# Python files that the container image of such a service needs.
FILES = (
    "racetrack/engines/shared/__init__.py",
    "racetrack/engines/shared/java_program/__init__.py",
    "racetrack/engines/shared/java_program/recipe.py",
    "racetrack/engines/shared/java_program/service.py",
)
