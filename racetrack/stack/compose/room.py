"""Whether the machine has the memory that the services were told they may use."""

from collections.abc import Collection

import psutil

from racetrack.errors import SetupError
from racetrack.settings import Settings

GIB = 1 << 30
MIB = 1 << 20
UNITS = {"m": MIB, "g": GIB}
# A JVM beyond its heap; MySQL, PyPy and Materialize at rest, as measured natively or read about.
BESIDE_A_HEAP = 300 * MIB
AT_REST = {"mysql": 500 * MIB, "loadgen": 300 * MIB, "materialized": 1200 * MIB}


def require(settings: Settings, services: Collection[str]) -> None:
    """Look, before anything starts.

    Raises:
        SetupError: there is too little; the message names the settings that need less.
    """
    needed = {name: _bytes_of(name, settings) for name in services}
    available = psutil.virtual_memory().available
    if sum(needed.values()) > available:
        largest = ", ".join(f"{name} {size / GIB:.1f}" for name, size in _largest_first(needed))
        raise SetupError(
            f"Not enough memory: the services may use {sum(needed.values()) / GIB:.1f} GiB"
            f" ({largest}), and {available / GIB:.1f} GiB are available. Stop something, or lower"
            " DEEPHAVEN_HEAP, CONNECT_HEAP or REDPANDA_MEMORY."
        )


def _bytes_of(service: str, settings: Settings) -> int:
    heaps = {
        "deephaven": [settings.deephaven_heap],
        "debezium": [settings.connect_heap],
        "redpanda": [settings.redpanda_memory],
    }
    if settings.airgap:
        heaps["redpanda"] = [settings.kafka_heap, settings.schema_registry_heap]
    each = [_bytes(heap) + BESIDE_A_HEAP for heap in heaps.get(service, [])]
    return sum(each) + AT_REST.get(service, 0)


def _bytes(size: str) -> int:
    return int(size[:-1]) * UNITS[size[-1].lower()]


def _largest_first(needed: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(needed.items(), key=lambda item: -item[1])
