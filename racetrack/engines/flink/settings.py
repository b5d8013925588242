"""Settings of Flink; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import (
    Count,
    Milliseconds,
    Port,
    Settings,
    Size,
    properties_except,
    properties_in,
    text_that,
)
from racetrack.stack.applicability import Applicability

# Properties that can't be set as such: reports state them by their settings.
RESERVED = {
    "execution.checkpointing.interval": "set FLINK_CHECKPOINT_MS",
    "sink.delivery-guarantee": "set FLINK_GUARANTEE",
    "state.backend.type": "set FLINK_STATE_BACKEND",
    "table.exec.sink.upsert-materialize": "set FLINK_UPSERT_MATERIALIZE",
}


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
    flink_guarantee: Literal["at_least_once", "exactly_once"]
    flink_upsert_materialize: Literal["AUTO", "FORCE", "NONE"]
    # Set inside pods only: the host name of the JobManager. Empty: each job gets a cluster of its
    # own inside the gateway.
    flink_jobmanager: str = Field(default="", exclude=True)
    flink_version: str
    flink_kafka_version: str
    flink_properties: Annotated[str, properties_except(RESERVED)]

    @property
    def properties(self) -> dict[str, str]:
        """The properties in FLINK_PROPERTIES."""
        return properties_in(self.flink_properties)

    @property
    def resumes(self) -> bool:
        """True if this stack's Flink makes checkpoints. Pods make none, and a Flink elsewhere has
        a configuration of its own."""
        is_here = self.runtime != "kubernetes" and not self.flink_gateway_url
        return is_here and bool(self.flink_checkpoint_ms)

    @property
    def uses_transactions(self) -> bool:
        """True if rows are written in transactions, which end with the checkpoints."""
        return self.resumes and self.flink_guarantee == "exactly_once"


APPLICABILITY = Applicability(
    harness_only=("FLINK_GATEWAY_URL", "FLINK_GUARANTEE"),
    provided={"FLINK_GATEWAY_URL": ("native", "kubernetes")},
    kept_files=("FLINK_CHECKPOINT_MS", "FLINK_GUARANTEE"),
    elsewhere=("FLINK_PROPERTIES",),
    image_versions=("FLINK_IMAGE_VERSION",),
)
