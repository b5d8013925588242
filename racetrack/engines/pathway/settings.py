"""Settings of Pathway; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import Field

from racetrack.config import Count, Milliseconds, Settings
from racetrack.stack.applicability import NOT_NATIVE, Applicability, Ignored

NATIVE_ONLY = "Pathway runs natively only"


class PathwaySettings(Settings):
    """Settings of Pathway."""

    pathway_autocommit_ms: Annotated[Milliseconds, Field(ge=1)]
    pathway_clock_ms: Annotated[Milliseconds, Field(ge=1)]
    pathway_threads: Count


NAMES = tuple(name.upper() for name in PathwaySettings.__annotations__)
APPLICABILITY = Applicability(
    ignored=(Ignored(NAMES, NOT_NATIVE, NATIVE_ONLY),),
    affects=dict.fromkeys(NAMES, "pathway"),
)
