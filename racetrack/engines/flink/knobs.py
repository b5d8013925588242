"""Settings that only Flink heeds; the `.env` beside this file says what they do."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.settings import Count, Heap, Port, Settings
from racetrack.stack.heeded import Heed


class Knobs(Settings):
    """See `racetrack.settings`."""

    flink_port: Port
    flink_heap: Heap
    flink_parallelism: Count
    flink_mini_batch_ms: Annotated[int, Field(ge=0)]
    flink_state_backend: Literal["hashmap", "rocksdb"]
    flink_checkpoint_ms: Annotated[int, Field(ge=0)]
    flink_upsert_materialize: Literal["AUTO", "FORCE", "NONE"]
    flink_version: str
    flink_kafka_version: str


HEED = Heed(image_versions=("FLINK_IMAGE_VERSION",))
