"""Settings that only PostgreSQL heeds; the `.env` beside this file says what they do."""

from typing import Annotated

from pydantic import SecretStr, StringConstraints

from racetrack.settings import Count, Port, Settings, Size
from racetrack.stack.heeded import IN_MEMORY, Heed


class Knobs(Settings):
    """See `racetrack.settings`."""

    postgres_port: Port
    postgres_tmpfs: Size
    postgres_shared_buffers: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*(MB|GB)$")]
    postgres_batch_ms: Count
    postgres_triggers: bool
    postgres_password: SecretStr


HEED = Heed(
    of_the_harness=("POSTGRES_TRIGGERS",),  # which loads the script
    not_heeded={"native": {"POSTGRES_TMPFS": IN_MEMORY}},
    changes_results_of={"POSTGRES_TMPFS": "postgres"},
    image_versions=("POSTGRES_IMAGE_VERSION",),
)
