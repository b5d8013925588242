"""Settings of Deephaven; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import Field, SecretStr

from racetrack.config import File, Milliseconds, Port, Settings, Size, text_that
from racetrack.stack.applicability import Applicability

ELSEWHERE = ("DEEPHAVEN_URL", "DEEPHAVEN_PSK_FILE", "DEEPHAVEN_SSL_CA_LOCATION")


class DeephavenSettings(Settings):
    """Settings of Deephaven."""

    deephaven_port: Port
    deephaven_url: Annotated[
        str, text_that(r"(https?://[\w.-]+:\d{1,5}/?)?", "a URL such as https://host:10000")
    ]
    deephaven_heap: Size
    deephaven_cycle_ms: Annotated[Milliseconds, Field(ge=1)]
    deephaven_publish: bool
    deephaven_version: str
    deephaven_psk: SecretStr
    deephaven_psk_file: File
    deephaven_ssl_ca_location: File


APPLICABILITY = Applicability(
    harness_only=(*ELSEWHERE, "DEEPHAVEN_PUBLISH"),
    provided=dict.fromkeys(ELSEWHERE, ("native",)),
    elsewhere=("DEEPHAVEN_PSK",),
)
