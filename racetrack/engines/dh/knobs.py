"""Settings that only Deephaven heeds. Their defaults are in the `.env` at the top of the
repository, since it is one of the published engines."""

from pydantic import SecretStr

from racetrack.settings import Count, Heap, Port, Settings


class Knobs(Settings):
    """See `racetrack.settings`."""

    deephaven_port: Port
    deephaven_heap: Heap
    deephaven_cycle_ms: Count
    deephaven_version: str
    deephaven_psk: SecretStr
