"""Settings of Spark; the `.env` in this folder describes them."""

from typing import Annotated, Literal

from pydantic import Field

from racetrack.config import (
    Count,
    Milliseconds,
    Settings,
    Size,
    properties_except,
    text_that,
)
from racetrack.stack.applicability import Applicability

# Properties that can't be set as such: the program relies on them.
RESERVED = {
    "spark.master": "set SPARK_MASTER_URL, or SPARK_CORES",
    "spark.sql.streaming.stateStore.providerClass": "transformWithState requires RocksDB",
    **dict.fromkeys(
        ("spark.app.name", "spark.driver.host", "spark.driver.bindAddress"), "the program sets it"
    ),
}


class SparkSettings(Settings):
    """Settings of Spark."""

    spark_master_url: Annotated[
        str, text_that(r"(spark://[\w.-]+:\d{1,5})?", "a URL such as spark://host:7077")
    ]
    spark_shared_folder: Annotated[
        str, text_that(r"(/[\w./-]+)?", "an absolute path of letters, digits and ._-/ alone")
    ]
    spark_heap: Size
    spark_trigger_ms: Milliseconds
    spark_cores: Annotated[int, Field(ge=0)]
    spark_shuffle_partitions: Count
    spark_after_a_kill: Literal["resume", "anew"]
    spark_properties: Annotated[str, properties_except(RESERVED, "spark.")]
    # Set inside pods only: the address of the master of the cluster whose driver is the program.
    peer_spark_master: str = Field(default="", exclude=True)
    spark_version: str


ELSEWHERE = ("SPARK_MASTER_URL", "SPARK_SHARED_FOLDER")
APPLICABILITY = Applicability(
    harness_only=ELSEWHERE,
    provided=dict.fromkeys(ELSEWHERE, ("native",)),
    kept_files=("SPARK_AFTER_A_KILL",),
    image_versions=("SPARK_IMAGE_VERSION",),
)
