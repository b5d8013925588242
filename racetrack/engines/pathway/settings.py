"""Settings of Pathway; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import Field

from racetrack.config import Count, Milliseconds, Settings


class PathwaySettings(Settings):
    """Settings of Pathway."""

    pathway_autocommit_ms: Annotated[Milliseconds, Field(ge=1)]
    pathway_clock_ms: Annotated[Milliseconds, Field(ge=1)]
    pathway_threads: Count


NAMES = tuple(name.upper() for name in PathwaySettings.__annotations__)
