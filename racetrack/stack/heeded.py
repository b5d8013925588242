"""Which settings of `.env` a runtime does not heed, and why: nobody should vary one in vain."""

import os
from collections.abc import Collection, Mapping

from racetrack.errors import UsageError
from racetrack.install.versions import parse_env_file
from racetrack.settings import REPO

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
_MATERIALIZE_SIZE = ("MATERIALIZE_WORKERS", "MATERIALIZE_MEMORY_MIB")
_MATERIALIZE = ("MATERIALIZE_PORT", *_MATERIALIZE_SIZE)
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
# how it names them, what is raced on, and where an engine is that it does not start.
OF_THE_HARNESS = frozenset(
    {
        "RUNTIME",
        "AIRGAP",
        "LOGS_FOLDER",
        "STACK_NAME",
        "WORKLOAD",
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

# Which service each of them would change the figures of: who sets one for a run expects that. Ports
# and versions are not among them: people export those for several stacks at once.
CHANGES_RESULTS_OF: Mapping[str, str] = {
    **dict.fromkeys(("REDPANDA_SMP", "REDPANDA_MEMORY", "REDPANDA_TMPFS", "KAFKA_HEAP"), "broker"),
    "SCHEMA_REGISTRY_HEAP": "registry",
    "MYSQL_TMPFS": "mysql",
    "POSTGRES_TMPFS": "postgres",
    **dict.fromkeys(_MATERIALIZE_SIZE, "materialized"),
    **dict.fromkeys(_CALIBRATION, "cal"),
}


def why_not(setting: str, runtime: str, *, airgap: bool) -> str:
    """Why this runtime does not heed the setting; empty if it does."""
    where = "airgap" if runtime == "compose" and airgap else runtime
    return NOT_HEEDED[where].get(setting.upper(), "")


def require_heeded(setting: str, runtime: str, *, airgap: bool, remedy: str = "") -> None:
    """
    Raises:
        UsageError: this runtime does not heed the setting; `remedy` says what to do.
    """
    if why := why_not(setting, runtime, airgap=airgap):
        how = "in containers" if runtime == "compose" else "natively"
        raise UsageError(
            f"{setting.upper()} does nothing to a stack that runs {how}: {why}. {remedy}".rstrip()
        )


def require_all_heeded(services: Collection[str], runtime: str, *, airgap: bool) -> None:
    """Look whether what the environment sets otherwise than `.env` does anything, as far as it is
    for one of these services: who sets it would take the result for one with that setting.

    Raises:
        UsageError: a setting does nothing in this runtime.
    """
    in_file = parse_env_file((REPO / ".env").read_text())
    given = {name.upper(): value.strip() for name, value in os.environ.items()}
    for setting, service in CHANGES_RESULTS_OF.items():
        if service in services and given.get(setting, in_file[setting]) != in_file[setting]:
            remedy = "Unset it in the environment, or choose another runtime (RUNTIME, AIRGAP)."
            require_heeded(setting, runtime, airgap=airgap, remedy=remedy)
