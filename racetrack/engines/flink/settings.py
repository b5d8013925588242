"""Settings of Flink; the `.env` in this folder describes them."""

from typing import Literal

from racetrack.config import Count, Milliseconds, Port, Settings, Size
from racetrack.stack.applicability import Applicability


class FlinkSettings(Settings):
    """Settings of Flink."""

    flink_port: Port
    flink_heap: Size
    flink_parallelism: Count
    flink_mini_batch_ms: Milliseconds
    flink_state_backend: Literal["hashmap", "rocksdb"]
    flink_checkpoint_ms: Milliseconds
    flink_upsert_materialize: Literal["AUTO", "FORCE", "NONE"]
    flink_version: str
    flink_kafka_version: str


APPLICABILITY = Applicability(image_versions=("FLINK_IMAGE_VERSION",))
