"""Settings of Storm; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import Count, Milliseconds, Settings, Size
from racetrack.stack.applicability import Applicability


class StormSettings(Settings):
    """Settings of Storm."""

    storm_heap: Size
    storm_guarantee: Literal["at_least_once", "at_most_once"]
    storm_flush_ms: Annotated[Milliseconds, Field(ge=1)]
    storm_commit_ms: Annotated[Milliseconds, Field(ge=1)]
    storm_parallelism: Count
    storm_version: str


APPLICABILITY = Applicability(image_versions=("STORM_IMAGE_VERSION",))
