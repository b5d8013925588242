"""What the published images are like, as far as the stack relies on it: one line per fact, with
the public file where it was read, and whether it was run.

The tests hold docker-compose.yml against this table (tests/stack/compose/test_published.py). With a
new version of an image, its lines are to be read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")

# In docs/measured.md, under "The compose file on stand-ins of the published images":
STAND_IN = "a stand-in built by that file"


@dataclass(frozen=True)
class Source:
    """A file of a public repository on GitHub, as of a commit or a tag."""

    repository: str
    path: str
    at: str


@dataclass(frozen=True)
class Fact(Generic[Value]):
    """Something that is so, and how that is known."""

    value: Value
    source: Source
    ran: str = ""  # on what it was run; empty: it was read only


@dataclass(frozen=True)
class User:
    """Whom the image's program runs as. One that starts as root makes its data folder its own."""

    name: str
    uid: int
    starts_as_root: bool


@dataclass(frozen=True)
class Flags:
    """Some of the JVM's arguments: what a variable holds, or else what the start script has."""

    variable: str
    otherwise: str = ""


@dataclass(frozen=True)
class Image:
    """One image, by its name without a tag. Its lines are taken to hold for tags that begin as
    `holds_for` does; some could only be read in a neighbouring version, which `at` says."""

    name: str
    holds_for: str
    programs: Fact[frozenset[str]]  # those that we call, not all that it has
    user: Fact[User] | None = None
    data: Fact[str] | None = None  # where what it keeps is
    variables: Fact[frozenset[str]] | None = None  # those that it heeds; may end in *
    health: Fact[str] | None = None  # the check that it comes with
    jvm: Fact[Sequence[Flags]] | None = None  # in the order in which its start script has them
    defaults: Mapping[str, Fact[str]] = field(default_factory=dict)  # those that matter here


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MYSQL = "docker-library/mysql", "7f30fdb07380"
_MYSQL_FILE = Source(_MYSQL[0], "9.7/Dockerfile.oracle", _MYSQL[1])
_MYSQL_ENTRY = Source(_MYSQL[0], "9.7/docker-entrypoint.sh", _MYSQL[1])

MYSQL = Image(
    "mysql",
    "9.7.",
    programs=Fact(_names("bash sh mysql"), _MYSQL_FILE, STAND_IN),
    user=Fact(User("mysql", 999, starts_as_root=True), _MYSQL_ENTRY, STAND_IN),
    data=Fact("/var/lib/mysql", _MYSQL_FILE, STAND_IN),
    variables=Fact(
        _names(
            "MYSQL_ROOT_PASSWORD MYSQL_ROOT_HOST MYSQL_DATABASE MYSQL_USER MYSQL_PASSWORD"
            " MYSQL_ALLOW_EMPTY_PASSWORD MYSQL_RANDOM_ROOT_PASSWORD MYSQL_ONETIME_PASSWORD"
            " MYSQL_INITDB_SKIP_TZINFO"
        ),
        _MYSQL_ENTRY,
        STAND_IN,
    ),
    defaults={
        "scripts for an empty database": Fact(
            "/docker-entrypoint-initdb.d/*.sh", _MYSQL_ENTRY, STAND_IN
        ),
        "the server that runs them": Fact("--skip-networking", _MYSQL_ENTRY, STAND_IN),
        "socket": Fact("/var/run/mysqld/mysqld.sock", _MYSQL_FILE),
    },
)

_POSTGRES = "docker-library/postgres", "6edb0a8c4def"
_POSTGRES_FILE = Source(_POSTGRES[0], "17/trixie/Dockerfile", _POSTGRES[1])
_POSTGRES_ENTRY = Source(_POSTGRES[0], "17/trixie/docker-entrypoint.sh", _POSTGRES[1])

POSTGRES = Image(
    "postgres",
    "17.",
    programs=Fact(_names("bash sh postgres psql pg_isready"), _POSTGRES_FILE, STAND_IN),
    user=Fact(User("postgres", 999, starts_as_root=True), _POSTGRES_ENTRY, STAND_IN),
    # Of 17. From 18 on PGDATA is /var/lib/postgresql/18/docker, and that mount is an error.
    data=Fact("/var/lib/postgresql/data", _POSTGRES_FILE, STAND_IN),
    variables=Fact(
        _names(
            "POSTGRES_USER POSTGRES_DB POSTGRES_PASSWORD POSTGRES_INITDB_ARGS"
            " POSTGRES_INITDB_WALDIR POSTGRES_HOST_AUTH_METHOD PGDATA"
        ),
        _POSTGRES_ENTRY,
        STAND_IN,
    ),
    defaults={
        "the server that makes the database": Fact("listen_addresses=''", _POSTGRES_ENTRY, STAND_IN)
    },
)

_REDPANDA = "redpanda-data/redpanda", "1c6cff34ea8b"  # of 2024-12, the newest C++ that could be had
_REDPANDA_CHART = "redpanda-data/redpanda-operator", "0ab80199c987"
_REDPANDA_RPK = Source(_REDPANDA[0], "src/go/rpk/pkg/cli/redpanda/start.go", _REDPANDA[1])
_REDPANDA_CONFIG = Source(_REDPANDA[0], "src/v/config/configuration.cc", _REDPANDA[1])

REDPANDA = Image(
    "docker.redpanda.com/redpandadata/redpanda",
    "v26.2.",
    # That curl is in it is seen from the start-up probe, which is run in the container.
    programs=Fact(
        _names("bash sh cp sed rpk curl"),
        Source(_REDPANDA_CHART[0], "charts/redpanda/statefulset.go", _REDPANDA_CHART[1]),
    ),
    user=Fact(
        User("redpanda", 101, starts_as_root=False),
        Source(_REDPANDA_CHART[0], "charts/redpanda/chart/values.yaml", _REDPANDA_CHART[1]),
    ),
    data=Fact(
        "/var/lib/redpanda/data",
        Source("redpanda-data/docs", "tests/docker-compose/docker-compose.yml", "3e7b662cd84c"),
    ),
    variables=Fact(_names("REDPANDA_* RP_BOOTSTRAP_USER"), _REDPANDA_RPK),
    defaults={
        "storage_min_free_bytes": Fact("5368709120", _REDPANDA_CONFIG),
        "segment_fallocation_step": Fact("33554432", _REDPANDA_CONFIG),
        "enable_metrics_reporter": Fact("true", _REDPANDA_CONFIG),
        "suffixes of --memory": Fact(
            "kKMGT", Source("redpanda-data/seastar", "src/util/conversions.cc", "f882c1dfdc86")
        ),
        "least memory of a core, in bytes": Fact(
            str(1 << 30), Source(_REDPANDA[0], "src/v/syschecks/syschecks.cc", _REDPANDA[1])
        ),
        # Read at the first start, from the `redpanda:` section, unless .bootstrap.yaml lies beside
        # the file: which is how `--mode dev-container` sets its own.
        "cluster properties in redpanda.yaml": Fact(
            "first start", Source(_REDPANDA[0], "src/v/cluster/config_manager.cc", _REDPANDA[1])
        ),
    },
)

_DEBEZIUM = "debezium/container-images", "07fabf0541b9"
_DEBEZIUM_ENTRY = Source(_DEBEZIUM[0], "connect-base/3.6/docker-entrypoint.sh", _DEBEZIUM[1])
_DEBEZIUM_KAFKA = Source(_DEBEZIUM[0], "kafka/3.6/Dockerfile", _DEBEZIUM[1])
_KAFKA_RUN = Source("apache/kafka", "bin/kafka-run-class.sh", "1eb7644349cb")

DEBEZIUM = Image(
    "quay.io/debezium/connect",
    "3.6.",
    programs=Fact(_names("bash sh curl sleep dirname"), _DEBEZIUM_KAFKA, STAND_IN),
    user=Fact(User("kafka", 1001, starts_as_root=False), _DEBEZIUM_KAFKA, STAND_IN),
    variables=Fact(
        _names(
            "BOOTSTRAP_SERVERS GROUP_ID HEAP_OPTS KEY_CONVERTER VALUE_CONVERTER"
            " CONFIG_STORAGE_TOPIC OFFSET_STORAGE_TOPIC STATUS_STORAGE_TOPIC LOG_LEVEL"
            " CONNECT_* KAFKA_OPTS KAFKA_JVM_PERFORMANCE_OPTS"
        ),
        _DEBEZIUM_ENTRY,
        STAND_IN,
    ),
    jvm=Fact(
        (
            Flags("HEAP_OPTS", "-Xms256M -Xmx2G"),
            Flags(
                "KAFKA_JVM_PERFORMANCE_OPTS",
                "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20"
                " -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent"
                " -XX:MaxInlineLevel=15 -Djava.awt.headless=true",
            ),
            Flags("KAFKA_OPTS"),
        ),
        _KAFKA_RUN,
        STAND_IN,
    ),
    defaults={
        "plugins": Fact(
            "/kafka/connect",
            Source(_DEBEZIUM[0], "connect-base/3.6/Dockerfile", _DEBEZIUM[1]),
            STAND_IN,
        ),
        "Java": Fact("21", Source(_DEBEZIUM[0], "base/latest/Dockerfile", _DEBEZIUM[1])),
        "CONNECT_A_B": Fact("a.b in connect-distributed.properties", _DEBEZIUM_ENTRY, STAND_IN),
    },
)

_MATERIALIZE = "MaterializeInc/materialize", "of 2025, commit not known"
_MATERIALIZE_ENTRY = Source(_MATERIALIZE[0], "src/materialized/ci/entrypoint.sh", _MATERIALIZE[1])
_MATERIALIZE_FILE = Source(
    _MATERIALIZE[0], "misc/images/materialized-base/Dockerfile", "3fabdf946f44"
)

MATERIALIZE = Image(
    "materialize/materialized",
    "v26.",
    programs=Fact(_names("bash sh curl"), _MATERIALIZE_FILE),
    user=Fact(User("materialize", 999, starts_as_root=False), _MATERIALIZE_FILE),
    data=Fact("/mzdata", _MATERIALIZE_FILE),
    variables=Fact(
        _names(
            "MZ_NO_TELEMETRY MZ_CLUSTER_REPLICA_SIZES MZ_SYSTEM_PARAMETER_DEFAULT MZ_EAT_MY_DATA"
            " MZ_BOOTSTRAP_DEFAULT_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_SYSTEM_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_PROBE_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_SUPPORT_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_CATALOG_SERVER_CLUSTER_REPLICA_SIZE"
            " MZ_BOOTSTRAP_BUILTIN_ANALYTICS_CLUSTER_REPLICA_SIZE"
        ),
        _MATERIALIZE_ENTRY,
    ),
    defaults={
        "its own PostgreSQL": Fact("port 26257", _MATERIALIZE_ENTRY),
        "MZ_BOOTSTRAP_ROLE": Fact("materialize", _MATERIALIZE_ENTRY),
    },
)

_DEEPHAVEN = "deephaven/deephaven-server-docker", "0ab4456bfb65"
_DEEPHAVEN_FILE = Source(_DEEPHAVEN[0], "contexts/server/Dockerfile", _DEEPHAVEN[1])
_DEEPHAVEN_APP = Source("deephaven/deephaven-core", "server/jetty-app/build.gradle", "c0dcdf13e634")

DEEPHAVEN = Image(
    "ghcr.io/deephaven/server",
    "42.",
    # No curl and no wget.
    programs=Fact(_names("sh /opt/grpc_health_probe/grpc_health_probe"), _DEEPHAVEN_FILE, STAND_IN),
    user=Fact(User("root", 0, starts_as_root=True), _DEEPHAVEN_FILE, STAND_IN),
    data=Fact("/data", _DEEPHAVEN_FILE, STAND_IN),
    variables=Fact(
        _names("START_OPTS JAVA_OPTS EXTRA_CLASSPATH DEEPHAVEN_*_DIR"), _DEEPHAVEN_FILE, STAND_IN
    ),
    health=Fact(
        "/opt/grpc_health_probe/grpc_health_probe -addr=localhost:10000 -connect-timeout=10s",
        _DEEPHAVEN_FILE,
        STAND_IN,
    ),
    jvm=Fact(
        (
            Flags("", "--add-exports java.base/jdk.internal.misc=ALL-UNNAMED"),
            Flags("", "--add-opens java.base/java.nio=ALL-UNNAMED"),
            Flags("", "-Dauthentication.client.configuration.list=AuthHandlers"),
            Flags("JAVA_OPTS"),
            Flags("START_OPTS"),
        ),
        _DEEPHAVEN_APP,
        STAND_IN,
    ),
    defaults={
        "entry point": Fact("/opt/deephaven/server-jetty/bin/start", _DEEPHAVEN_FILE),
        "deephaven.console.type": Fact(
            "python",
            Source(_DEEPHAVEN[0], "contexts/server/deephaven.prop", _DEEPHAVEN[1]),
            STAND_IN,
        ),
        "Java": Fact("21", Source(_DEEPHAVEN[0], "server.hcl", _DEEPHAVEN[1])),
    },
)

_FLINK = "apache/flink-docker", "983be3455636"
_FLINK_FILE = Source(_FLINK[0], "2.2/scala_2.12-java17-ubuntu/Dockerfile", _FLINK[1])
_FLINK_ENTRY = Source(_FLINK[0], "2.2/scala_2.12-java17-ubuntu/docker-entrypoint.sh", _FLINK[1])
# Its scripts and config.yaml are in the package apache-flink of PyPI, too.
_FLINK_CONFIG = Source("apache/flink", "flink-dist/src/main/resources/config.yaml", "release-2.3.0")
_FLINK_SCRIPT = Source(
    "apache/flink", "flink-dist/src/main/flink-bin/bin/flink-console.sh", "release-2.3.0"
)

FLINK = Image(
    "flink",
    "2.3.",
    programs=Fact(
        _names("bash sh curl"),
        Source("adoptium/containers", "17/jre/ubuntu/noble/Dockerfile", "d8d18d67a32e"),
    ),
    user=Fact(User("flink", 9999, starts_as_root=False), _FLINK_FILE, STAND_IN),
    data=Fact("/opt/flink", _FLINK_FILE, STAND_IN),
    variables=Fact(
        _names("FLINK_PROPERTIES JVM_ARGS TASK_MANAGER_NUMBER_OF_TASK_SLOTS DISABLE_JEMALLOC"),
        _FLINK_ENTRY,
        STAND_IN,
    ),
    jvm=Fact(
        (
            Flags("JVM_ARGS"),
            Flags("", "-XX:+IgnoreUnrecognizedVMOptions"),
            Flags("", "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED"),
            Flags("", "--add-opens=java.base/java.lang=ALL-UNNAMED"),
            Flags("", "--add-opens=java.base/java.util=ALL-UNNAMED"),
        ),
        _FLINK_SCRIPT,
        STAND_IN,
    ),
    defaults={
        "taskmanager.numberOfTaskSlots": Fact("1", _FLINK_CONFIG, STAND_IN),
        "parallelism.default": Fact("1", _FLINK_CONFIG, STAND_IN),
        "blob.server.port": Fact("6124", _FLINK_ENTRY, STAND_IN),
    },
)

PYPY = Image(
    "pypy",
    "3.11-7.3.",
    programs=Fact(
        _names("bash sh pypy3 ln mv uname basename"),
        Source("docker-library/pypy", "3.11/bookworm/Dockerfile", "84c50d19b0b9"),
    ),
)
PYTHON = Image(
    "python",
    "3.11.",
    programs=Fact(
        _names("sh python pip test"),
        Source("docker-library/python", "3.11/slim-bookworm/Dockerfile", "4f07059567fa"),
    ),
)
MAVEN = Image(
    "maven",
    "3.9.",
    programs=Fact(
        _names("sh mvn"),
        Source("carlossg/docker-maven", "eclipse-temurin-21-noble/Dockerfile", "0170c5bc5c25"),
    ),
)

IMAGES: Mapping[str, Image] = {
    image.name: image
    for image in (
        *(MYSQL, POSTGRES, REDPANDA, DEBEZIUM, MATERIALIZE),
        *(DEEPHAVEN, FLINK, PYPY, PYTHON, MAVEN),
    )
}
