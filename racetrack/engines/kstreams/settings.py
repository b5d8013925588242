"""Settings of Kafka Streams; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import (
    Count,
    Mebibytes,
    Milliseconds,
    Settings,
    ShellWords,
    Size,
    properties_except,
)
from racetrack.stack.applicability import Applicability

EXACTLY_ONCE = "exactly_once_v2"
# Properties that can't be set as such: the harness relies on them.
RESERVED = {
    "processing.guarantee": "set KSTREAMS_GUARANTEE",
    "commit.interval.ms": "set KSTREAMS_COMMIT_MS",
    **dict.fromkeys(
        ("application.id", "bootstrap.servers", "group.instance.id", "state.dir"),
        "the program sets it",
    ),
}


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
    kstreams_properties: Annotated[str, properties_except(RESERVED)]
    kstreams_jvm_options: ShellWords
    kstreams_version: str


APPLICABILITY = Applicability(image_versions=("KSTREAMS_IMAGE_VERSION",))
