"""Settings of PostgreSQL; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from racetrack.config import Milliseconds, Port, PostgresUrl, Settings, ShareOfMemory, Size
from racetrack.stack.applicability import Applicability


def _postgres_size(size: str) -> str:
    """Return a size in the format of postgresql.conf, such as `256MB` or `4kB`."""
    return size[:-1] + {"k": "kB", "m": "MB", "g": "GB"}[size[-1]]


class PostgresSettings(Settings):
    """Settings of PostgreSQL."""

    postgres_port: Port
    postgres_url: PostgresUrl
    postgres_tmpfs: Size
    # The share that PostgreSQL's documentation recommends; the rest is for data and connections.
    postgres_shared_buffers: Annotated[Size, AfterValidator(_postgres_size), ShareOfMemory(0.25)]
    postgres_batch_ms: Annotated[Milliseconds, Field(ge=1)]
    postgres_triggers: bool
    postgres_unlogged: bool
    postgres_password: SecretStr


APPLICABILITY = Applicability(
    # The harness passes them to the script.
    harness_only=("POSTGRES_TRIGGERS", "POSTGRES_UNLOGGED"),
    provided={"POSTGRES_URL": ("native",)},
    owners={
        **dict.fromkeys(("POSTGRES_TMPFS", "POSTGRES_SHARED_BUFFERS"), "postgres"),
        **dict.fromkeys(("POSTGRES_URL", "POSTGRES_BATCH_MS"), "pgfeed"),
    },
    workloads={"POSTGRES_TRIGGERS": ("shop",)},  # ads.pg.sql has no triggers
    image_versions=("POSTGRES_IMAGE_VERSION",),
)
