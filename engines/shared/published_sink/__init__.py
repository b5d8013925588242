"""The Java by which engines write to Redis what Yahoo's benchmark does, and the service that runs
an engine's program with it."""

# What such a service is, for an image that runs it.
FILES = (
    "engines/shared/__init__.py",
    "engines/shared/published_sink/__init__.py",
    "engines/shared/published_sink/program.py",
)
