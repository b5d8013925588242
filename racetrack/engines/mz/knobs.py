"""Settings that only Materialize heeds. Their defaults are in the `.env` at the top of the
repository, since it is one of the published engines."""

from typing import Annotated

from pydantic import SecretStr, StringConstraints

from racetrack.settings import Count, Port, Settings
from racetrack.stack.heeded import Heed

ELSEWHERE = "Materialize is not started there: it runs where MZ_URL says"
SIZE = ("MATERIALIZE_WORKERS", "MATERIALIZE_MEMORY_MIB")
HERE = dict.fromkeys(("MATERIALIZE_PORT", *SIZE), ELSEWHERE)


class Knobs(Settings):
    """See `racetrack.settings`."""

    materialize_port: Port
    materialize_workers: Count
    materialize_memory_mib: Count
    mz_url: SecretStr  # it may hold a password
    mz_kafka: str
    mz_schema_registry_url: str
    mz_pid: Annotated[str, StringConstraints(pattern=r"^[0-9]*(,[0-9]+)*$")]


HEED = Heed(
    of_the_harness=("MZ_URL", "MZ_KAFKA", "MZ_SCHEMA_REGISTRY_URL", "MZ_PID"),
    not_heeded={"native": HERE, "airgap": HERE},
    changes_results_of=dict.fromkeys(SIZE, "materialized"),
    image_versions=("MATERIALIZE_VERSION", "POSTGRES_IMAGE_VERSION"),  # the second brings psql
)
