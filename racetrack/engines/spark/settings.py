"""Settings of Spark; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import Count, Milliseconds, Settings, Size
from racetrack.stack.applicability import Applicability


class SparkSettings(Settings):
    """Settings of Spark."""

    spark_heap: Size
    spark_trigger_ms: Milliseconds
    spark_cores: Annotated[int, Field(ge=0)]
    spark_shuffle_partitions: Count
    spark_state_store: Literal["hdfs", "rocksdb"]
    spark_after_a_kill: Literal["resume", "anew"]
    spark_version: str


APPLICABILITY = Applicability(image_versions=("SPARK_IMAGE_VERSION",))
