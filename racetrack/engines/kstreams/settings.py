"""Settings of Kafka Streams; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import Count, Mebibytes, Milliseconds, Settings, Size
from racetrack.stack.applicability import Applicability

EXACTLY_ONCE = "exactly_once_v2"


class KafkaStreamsSettings(Settings):
    """Settings of Kafka Streams."""

    kstreams_heap: Size
    kstreams_threads: Count
    kstreams_commit_ms: Annotated[Milliseconds, Field(ge=1)]
    kstreams_guarantee: Literal["at_least_once", "exactly_once_v2"]
    kstreams_cache_mb: Mebibytes
    kstreams_linger_ms: Milliseconds
    kstreams_store: Literal["rocksdb", "in_memory"]
    kstreams_changelog: Literal["on", "off"]
    kstreams_after_a_kill: Literal["resume", "anew"]
    kstreams_version: str


APPLICABILITY = Applicability(image_versions=("KSTREAMS_IMAGE_VERSION",))
