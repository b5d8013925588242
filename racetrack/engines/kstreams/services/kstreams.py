"""The program in which Kafka Streams keeps the views (see racetrack/engines/kstreams/program)."""

from racetrack.config import Settings
from racetrack.engines.kstreams.settings import KafkaStreamsSettings
from racetrack.engines.shared.java_program.service import TABLES, Program


def heap(settings: Settings) -> str:
    """What is outside of it is RocksDB's."""
    return KafkaStreamsSettings.of(settings).kstreams_heap


def told(settings: Settings) -> dict[str, str]:
    """What the program is told in every runtime."""
    own = KafkaStreamsSettings.of(settings)
    return {
        "WORKLOAD": settings.workload,
        "KSTREAMS_THREADS": str(own.kstreams_threads),
        "KSTREAMS_COMMIT_MS": str(own.kstreams_commit_ms),
        "KSTREAMS_GUARANTEE": own.kstreams_guarantee,
        "KSTREAMS_CACHE_MB": str(own.kstreams_cache_mb),
        "KSTREAMS_LINGER_MS": str(own.kstreams_linger_ms),
        "KSTREAMS_STORE": own.kstreams_store,
        "KSTREAMS_CHANGELOG": own.kstreams_changelog,
        "KSTREAMS_AFTER_A_KILL": own.kstreams_after_a_kill,
    }


SERVICE = Program(
    "kstreams",
    "kafka-streams",
    heap,
    told,
    TABLES,
    keeps_state=True,
    product="kafka-streams",
    ready_within_s=180.0,  # a hundred tasks with stores of their own
)
