"""Settings that only Storm heeds; the `.env` beside this file says what they do."""

from typing import Literal

from racetrack.settings import Count, Heap, Settings
from racetrack.stack.heeded import Heed


class Knobs(Settings):
    """See `racetrack.settings`."""

    storm_heap: Heap
    storm_guarantee: Literal["at_least_once", "at_most_once"]
    storm_flush_ms: Count
    storm_commit_ms: Count
    storm_parallelism: Count
    storm_version: str


HEED = Heed(image_versions=("STORM_IMAGE_VERSION",))
