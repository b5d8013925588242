"""Settings of Materialize; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import Field

from racetrack.config import Count, Mebibytes, Port, PostgresUrl, Settings, text_that
from racetrack.stack.applicability import Applicability


class MaterializeSettings(Settings):
    """Settings of Materialize."""

    materialize_port: Port
    materialize_workers: Count
    materialize_memory_mib: Annotated[Mebibytes, Field(ge=1)]
    mz_url: PostgresUrl
    mz_kafka: Annotated[str, text_that(r"([\w.-]+:\d+)?", "host:port")]
    mz_schema_registry_url: Annotated[
        str,
        text_that(r"(https?://[\w.:\[\]-]+)?", "a URL without a path, such as http://host:8081"),
    ]
    mz_pid: Annotated[str, text_that(r"(\d+(,\d+)*)?", "a list of pids such as 4711,4712")]


APPLICABILITY = Applicability(
    harness_only=("MZ_URL", "MZ_KAFKA", "MZ_SCHEMA_REGISTRY_URL", "MZ_PID"),
    image_versions=("MATERIALIZE_VERSION",),
)
