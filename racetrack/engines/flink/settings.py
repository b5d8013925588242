"""Settings of Flink; the `.env` in this folder describes them."""

from typing import Literal

from pydantic import Field

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
    # Set inside pods only: the host name of the JobManager. Empty: each job gets a cluster of its
    # own inside the gateway.
    flink_jobmanager: str = Field(default="", exclude=True)
    flink_version: str
    flink_kafka_version: str


APPLICABILITY = Applicability(
    ignored={"kubernetes": {"FLINK_CHECKPOINT_MS": "pods have no folder in common"}},
    image_versions=("FLINK_IMAGE_VERSION",),
)
