"""Settings of Apex; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import Count, Milliseconds, Settings, Size
from racetrack.stack.applicability import Applicability


class ApexSettings(Settings):
    """Settings of Apex."""

    apex_heap: Size
    apex_guarantee: Literal["at_least_once", "at_most_once"]
    apex_window_ms: Annotated[Milliseconds, Field(ge=1)]
    apex_flush_ms: Annotated[Milliseconds, Field(ge=1)]
    apex_checkpoint_windows: Count
    apex_locality: Literal["container_local", "thread_local"]
    apex_version: str


APPLICABILITY = Applicability(image_versions=("APEX_IMAGE_VERSION",))
