"""Settings of Flink; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import Count, Milliseconds, Port, Settings, Size, text_that
from racetrack.stack.applicability import CONTAINERS, Applicability, Ignored

NATIVE_ONLY = "a stack in containers starts its own Flink"


class FlinkSettings(Settings):
    """Settings of Flink."""

    flink_port: Port
    flink_gateway_url: Annotated[
        str,
        text_that(r"(https?://[\w.-]+(:\d{1,5})?)?", "a URL such as http://host:8083"),
    ]
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
    harness_only=("FLINK_GATEWAY_URL",),
    ignored=(
        Ignored(("FLINK_GATEWAY_URL",), CONTAINERS, NATIVE_ONLY),
        Ignored(("FLINK_CHECKPOINT_MS",), ("kubernetes",), "pods have no folder in common"),
    ),
    affects={"FLINK_GATEWAY_URL": "flink"},
    image_versions=("FLINK_IMAGE_VERSION",),
)
