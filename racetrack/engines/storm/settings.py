"""Settings of Storm; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import Count, Milliseconds, Settings, Size, properties_except
from racetrack.stack.applicability import Applicability

# Properties that can't be set as such: the program relies on them, or they have no effect in it.
RESERVED = {
    "topology.acker.executors": "set STORM_GUARANTEE",
    "topology.max.task.parallelism": "set STORM_PARALLELISM",
    "topology.name": "the program sets it",
    "topology.tick.tuple.freq.secs": "not all stages expect ticks",
    "topology.workers": "all workers would be in the same process",
    **dict.fromkeys(
        ("topology.worker.childopts", "topology.worker.gc.childopts"), "set JVM_OPTIONS"
    ),
}


class StormSettings(Settings):
    """Settings of Storm."""

    storm_heap: Size
    storm_guarantee: Literal["at_least_once", "at_most_once"]
    storm_flush_ms: Annotated[Milliseconds, Field(ge=1)]
    storm_commit_ms: Annotated[Milliseconds, Field(ge=1)]
    storm_parallelism: Count
    storm_properties: Annotated[str, properties_except(RESERVED, "topology.")]
    storm_version: str


APPLICABILITY = Applicability(image_versions=("STORM_IMAGE_VERSION",))
