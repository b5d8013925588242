"""Settings of Pathway; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import Field

from racetrack.config import Count, Milliseconds, Settings, properties_except

# Variables that can't be set as such.
RESERVED = {
    **dict.fromkeys(
        ("PATHWAY_AUTOCOMMIT_MS", "PATHWAY_CLOCK_MS", "PATHWAY_THREADS"),
        "it is a setting of its own",
    ),
    "PATHWAY_PROCESSES": "the program is one process",
    "PATHWAY_LICENSE_KEY": "it runs without a key",
}


class PathwaySettings(Settings):
    """Settings of Pathway."""

    pathway_autocommit_ms: Annotated[Milliseconds, Field(ge=1)]
    pathway_clock_ms: Annotated[Milliseconds, Field(ge=1)]
    pathway_threads: Count
    pathway_properties: Annotated[str, properties_except(RESERVED, "PATHWAY_")]


NAMES = tuple(name.upper() for name in PathwaySettings.__annotations__)
