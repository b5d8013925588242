"""Which settings of `.env` a runtime does not heed, and why: nobody should vary one in vain."""

from collections.abc import Mapping

KAFKA = "the broker is Apache Kafka there: see KAFKA_HEAP"
REDPANDA = "broker and registry are Redpanda there: see REDPANDA_MEMORY"
ELSEWHERE = "Materialize is not started there: it runs where MZ_URL says"
NATIVE_ONLY = "the calibration engine runs natively only"
BUILT_IN = "it is in the images that `./race images` made"
NO_IMAGE = "no published image is used there"

_CALIBRATION = (
    *("CAL_DELAY_MS", "CAL_CAPACITY_PER_S", "CAL_STALLED_PARTITION", "CAL_STALL_AFTER_S"),
    "CAL_STALL_FOR_S",
)
_MATERIALIZE = ("MATERIALIZE_PORT", "MATERIALIZE_WORKERS", "MATERIALIZE_MEMORY_MIB")
_PARTS = (
    *("KAFKA_VERSION", "APICURIO_VERSION", "DEBEZIUM_VERSION", "DEEPHAVEN_VERSION"),
    *("FLINK_VERSION", "FLINK_KAFKA_VERSION"),
)
_IMAGES = (
    *("MYSQL_IMAGE_VERSION", "REDPANDA_VERSION", "MATERIALIZE_VERSION", "POSTGRES_IMAGE_VERSION"),
    *("FLINK_IMAGE_VERSION", "PYPY_IMAGE_VERSION", "PYTHON_IMAGE_VERSION", "CONFLUENT_VERSION"),
    "MAVEN_IMAGE_VERSION",
)

# They are for the harness itself, in every runtime: what it starts services with, where it writes,
# how it names them, and where an engine is that it does not start.
OF_THE_HARNESS = frozenset(
    {
        "RUNTIME",
        "AIRGAP",
        "LOGS_FOLDER",
        "STACK_NAME",
        "MZ_URL",
        "MZ_KAFKA",
        "MZ_SCHEMA_REGISTRY_URL",
        "MZ_PID",
    }
)

NOT_HEEDED: Mapping[str, Mapping[str, str]] = {
    "native": {
        "REDPANDA_SMP": KAFKA,
        "REDPANDA_MEMORY": KAFKA,
        **dict.fromkeys(
            ("REDPANDA_TMPFS", "MYSQL_TMPFS", "POSTGRES_TMPFS"), "data is in /dev/shm there"
        ),
        **dict.fromkeys(_MATERIALIZE, ELSEWHERE),
        **dict.fromkeys(_IMAGES, NO_IMAGE),
    },
    "compose": {
        **dict.fromkeys(("KAFKA_HEAP", "KAFKA_CONTROLLER_PORT", "SCHEMA_REGISTRY_HEAP"), REDPANDA),
        **dict.fromkeys(("KAFKA_VERSION", "APICURIO_VERSION"), REDPANDA),
        **dict.fromkeys(_CALIBRATION, NATIVE_ONLY),
    },
    "airgap": {
        "REDPANDA_SMP": KAFKA,
        "REDPANDA_MEMORY": KAFKA,
        "KAFKA_CONTROLLER_PORT": "it is not published",
        **dict.fromkeys(_MATERIALIZE, ELSEWHERE),
        **dict.fromkeys(_CALIBRATION, NATIVE_ONLY),
        **dict.fromkeys(_PARTS, BUILT_IN),
        **dict.fromkeys(_IMAGES, NO_IMAGE),
    },
}


def why_not(setting: str, runtime: str, *, airgap: bool) -> str:
    """Why this runtime does not heed the setting; empty if it does."""
    where = "airgap" if runtime == "compose" and airgap else runtime
    return NOT_HEEDED[where].get(setting.upper(), "")
