"""What engines share that are Java programs of ours: the service that runs one, and in `src/` the
Java that each of them holds."""

# What such a service is, for an image that runs it.
FILES = (
    "racetrack/engines/shared/__init__.py",
    "racetrack/engines/shared/java_program/__init__.py",
    "racetrack/engines/shared/java_program/service.py",
)
