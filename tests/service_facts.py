"""Facts about each native service, for tests that cover all of them. The stack's services are here;
those of an engine are in FACTS of its `racetrack/engines/<engine>/tests/facts.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from racetrack import plugins
from racetrack.install.versions import in_env_files
from racetrack.stack.service import Context

Environment = Mapping[str, str]


@dataclass(frozen=True)
class Facts:
    """Facts about some services. Settings are named as in `.env`."""

    launched: Sequence[str] = ()  # services that can be launched with only `files`
    # Installed part → files in it that a service expects before it starts.
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)  # reported if `files` exist
    # Setting → another valid value, where one that is made automatically would be invalid.
    other_values: Mapping[str, str] = field(default_factory=dict)
    # Setting → settings that must be changed first, because with their defaults the setting has no
    # visible effect.
    changed_from: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Heap setting → the service whose JVM uses it, natively and in images that are built here.
    jvm_of: Mapping[str, str] = field(default_factory=dict)
    # Heap setting → the service in docker-compose.yml, and its published image or base image.
    image_of: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Service → function from its environment to the arguments of the JVM that its start script
    # runs.
    inner_jvm: Mapping[str, Callable[[Environment], Sequence[str]]] = field(default_factory=dict)
    # Function that returns the configuration of services that are not in `launched`.
    configured: Callable[[Context], Mapping[str, str]] = lambda _: {}


CORES = ("ENGINE_CPUS", "BROKER_CPUS", "LOADGEN_CPUS", "HARNESS_CPUS")
OUTSIDE = {"KAFKA_BOOTSTRAP_SERVERS": "b.example:9", "KAFKA_TOPIC_PREFIX": "race-1."}
FILES = TemporaryDirectory()  # removed at exit


def a_file(name: str, content: str) -> str:
    """Return the path of a new file that only its user may read."""
    file = Path(FILES.name) / name
    file.write_text(content)
    file.chmod(0o600)
    return str(file)


REGISTRY = {
    **OUTSIDE,
    "REGISTRY_URL": "http://r.example",
    "REGISTRY_USERNAME": "her",
    "REGISTRY_PASSWORD_FILE": a_file("password", "word"),
}

STACK = Facts(
    launched=("mysql", "broker", "registry", "redis", "debezium", "loadgen"),
    files={
        "mysql": (
            "VERSION",
            "made/data/ibdata1",
            "usr/lib/mysql/plugin/component_reference_cache.so",
            "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        ),
        "redis": ("VERSION", "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
        "nginx": ("VERSION", "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
        "kafka": (
            "libs/kafka_2.13-4.3.1.jar",
            "libs/kafka-clients-4.3.1.jar",
            "libs/connect-runtime-4.3.1.jar",
            "made/bootstrap.checkpoint",
        ),
        "registry": ("apicurio-registry-app-2.6.13.Final-runner.jar",),
        "debezium": (
            "plugins/debezium-connector-mysql/debezium-connector-mysql-3.6.1.Final.jar",
            "plugins/debezium-connector-mysql/kafka-clients-4.3.0.jar",
            "plugins/apicurio-converter/apicurio-registry-utils-converter-2.6.13.Final.jar",
        ),
        "loadgen": ("VERSION", "bin/pypy3", "lib/librdkafka-0.so.1"),
    },
    versions={
        "mysql": "9.9",
        "kafka": "4.3.1",
        "java": "17.0.99",
        "apicurio": "2.6.13.Final",
        "nginx": "9.9",
        "redis": "9.9",
        "debezium": "3.6.1.Final",
        "avro-converter": "2.6.13.Final",
        "kafka-connect": "4.3.1",
        "loadgen": "9.9",
    },
    other_values={
        "BIND_ADDRESS": "127.0.0.9",
        "KAFKA_ADVERTISED_ADDRESS": "a.example",
        "KAFKA_RETENTION_BYTES": "100000000",
        "KAFKA_BOOTSTRAP_SERVERS": "a.example:9",
        "KAFKA_TOPIC_PREFIX": "race-2.",
        "KAFKA_REPLICATION_FACTOR": "3",
        "KAFKA_CLIENT_PROPERTIES": a_file("client.properties", "client.id=another\n"),
        "REGISTRY_URL": "https://r.example",
        "REGISTRY_USERNAME": "me",
        "REGISTRY_PASSWORD_FILE": a_file("another-password", "another"),
        "REGISTRY_SSL_CA_LOCATION": "LICENSE",
        "REDPANDA_MEMORY": "9G",
        "LOADGEN_ACKS": "all",
        "SHOP_PAGEVIEW_BYTES": "200",
        "ADS_EVENT_BYTES": "300",
        "NEXMARK_QUERIES": "q9",
    },
    changed_from={
        "REDPANDA_SMP": {"REDPANDA_MEMORY": "9G"},
        **{name: {name: "1"} for name in CORES},
        **dict.fromkeys((*OUTSIDE, "KAFKA_REPLICATION_FACTOR", "KAFKA_CLIENT_PROPERTIES"), OUTSIDE),
        **{name: REGISTRY for name in in_env_files() if name.startswith("REGISTRY_")},
        "JVM_OPTIONS": {"JVM_OPTIONS": "-Dracetrack.before=1"},
    },
    jvm_of={"KAFKA_HEAP": "broker"},
)


WITH_FACTS = [path.parts[-3] for path in sorted(plugins.ENGINES.glob("*/tests/facts.py"))]
FACTS: list[Facts] = [STACK]
FACTS += [import_module(f"racetrack.engines.{name}.tests.facts").FACTS for name in WITH_FACTS]
LAUNCHED = tuple(service for facts in FACTS for service in facts.launched)
OTHER_VALUES = {name: value for facts in FACTS for name, value in facts.other_values.items()}


def another_value(setting: str) -> str:
    """Return a valid value that differs from the one in the settings files."""
    value = in_env_files()[setting]
    if setting in OTHER_VALUES:
        return OTHER_VALUES[setting]
    if setting in CORES:
        return "0"
    if value in ("false", "true"):
        return "true" if value == "false" else "false"
    if setting.endswith(("_HEAP", "_TMPFS")):
        return "7g"
    return str(int(value) + 1) if value.lstrip("-").isdigit() else "9.9.9"
