"""Settings of Materialize. Their defaults are in the `.env` at the top of the repository, since
Materialize is one of the engines of the experiment of 2022."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from racetrack.config import Count, Mebibytes, Port, Settings, text_that
from racetrack.stack.applicability import Applicability

ELSEWHERE = "this runtime does not start Materialize; MZ_URL is the address of a running one"
SIZE = ("MATERIALIZE_WORKERS", "MATERIALIZE_MEMORY_MIB")
HERE = dict.fromkeys(("MATERIALIZE_PORT", *SIZE), ELSEWHERE)


def _url_of_materialize(secret: SecretStr) -> SecretStr:
    """Check the URL. Errors do not quote it, since it may contain a password."""
    if not (text := secret.get_secret_value()):
        return secret
    try:
        url = urlsplit(text)
        is_usable = url.scheme in ("postgres", "postgresql") and url.hostname and url.port != 0
    except ValueError:  # the port is invalid
        is_usable = False
    if not is_usable:
        raise ValueError("it is not a URL such as postgres://user:password@host:6875/materialize")
    return secret


class MaterializeSettings(Settings):
    """Settings of Materialize."""

    materialize_port: Port
    materialize_workers: Count
    materialize_memory_mib: Annotated[Mebibytes, Field(ge=1)]
    mz_url: Annotated[SecretStr, AfterValidator(_url_of_materialize)]  # may contain a password
    mz_kafka: Annotated[str, text_that(r"([\w.-]+:\d+)?", "host:port")]
    mz_schema_registry_url: Annotated[
        str,
        text_that(r"(https?://[\w.:\[\]-]+)?", "a URL without a path, such as http://host:8081"),
    ]
    mz_pid: Annotated[str, text_that(r"(\d+(,\d+)*)?", "a list of pids such as 4711,4712")]


APPLICABILITY = Applicability(
    harness_only=("MZ_URL", "MZ_KAFKA", "MZ_SCHEMA_REGISTRY_URL", "MZ_PID"),
    ignored={"native": HERE, "airgap": HERE},
    affects=dict.fromkeys(SIZE, "materialized"),
    image_versions=("MATERIALIZE_VERSION", "POSTGRES_IMAGE_VERSION"),  # PostgreSQL's has psql
)
