"""Settings of PostgreSQL; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from racetrack.config import Milliseconds, Port, PostgresUrl, Settings, Size
from racetrack.stack.applicability import IN_MANIFESTS, IN_MEMORY, Applicability

NATIVE_ONLY = "the consumer in a container fills the PostgreSQL of the stack"


def _postgres_size(size: str) -> str:
    """Return a size in the format of postgresql.conf, such as `256MB` or `4kB`."""
    return size[:-1] + {"k": "kB", "m": "MB", "g": "GB"}[size[-1]]


class PostgresSettings(Settings):
    """Settings of PostgreSQL."""

    postgres_port: Port
    postgres_url: PostgresUrl
    postgres_tmpfs: Size
    postgres_shared_buffers: Annotated[Size, AfterValidator(_postgres_size)]
    postgres_batch_ms: Annotated[Milliseconds, Field(ge=1)]
    postgres_triggers: bool
    postgres_password: SecretStr


APPLICABILITY = Applicability(
    harness_only=("POSTGRES_TRIGGERS",),  # the harness passes it to the script
    ignored={
        "native": {"POSTGRES_TMPFS": IN_MEMORY},
        "compose": {"POSTGRES_URL": NATIVE_ONLY},
        "airgap": {"POSTGRES_URL": NATIVE_ONLY},
        "kubernetes": {"POSTGRES_TMPFS": IN_MANIFESTS},
    },
    affects={"POSTGRES_TMPFS": "postgres", "POSTGRES_URL": "pgfeed"},
    image_versions=("POSTGRES_IMAGE_VERSION",),
)
