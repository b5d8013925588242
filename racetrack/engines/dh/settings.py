"""Settings of Deephaven. Their defaults are in the `.env` at the top of the repository, since
Deephaven is one of the engines of the experiment of 2022."""

from typing import Annotated

from pydantic import Field, SecretStr

from racetrack.config import Milliseconds, Port, Settings, Size


class DeephavenSettings(Settings):
    """Settings of Deephaven."""

    deephaven_port: Port
    deephaven_heap: Size
    deephaven_cycle_ms: Annotated[Milliseconds, Field(ge=1)]
    deephaven_version: str
    deephaven_psk: SecretStr
