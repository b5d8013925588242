"""What the published images are like, as far as the stack relies on it: one line per fact, with
the public file where it was read, and whether it was run. What is so of an engine's image stands in
`racetrack/engines/<engine>/published.py`.

The tests hold docker-compose.yml against this table (tests/stack/compose/test_published.py). With a
new version of an image, its lines are to be read again.
"""

from collections.abc import Mapping

from racetrack import plugins
from racetrack.stack.compose.image_facts import STAND_IN, Fact, Flags, Image, Source, User, names

_MYSQL = "docker-library/mysql", "7f30fdb07380"
_MYSQL_FILE = Source(_MYSQL[0], "9.7/Dockerfile.oracle", _MYSQL[1])
_MYSQL_ENTRY = Source(_MYSQL[0], "9.7/docker-entrypoint.sh", _MYSQL[1])

MYSQL = Image(
    "mysql",
    "9.7.",
    programs=Fact(names("bash sh mysql"), _MYSQL_FILE, STAND_IN),
    user=Fact(User("mysql", 999, starts_as_root=True), _MYSQL_ENTRY, STAND_IN),
    data=Fact("/var/lib/mysql", _MYSQL_FILE, STAND_IN),
    variables=Fact(
        names(
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

_REDPANDA = "redpanda-data/redpanda", "1c6cff34ea8b"  # of 2024-12, the newest C++ that could be had
_REDPANDA_CHART = "redpanda-data/redpanda-operator", "0ab80199c987"
_REDPANDA_RPK = Source(_REDPANDA[0], "src/go/rpk/pkg/cli/redpanda/start.go", _REDPANDA[1])
_REDPANDA_CONFIG = Source(_REDPANDA[0], "src/v/config/configuration.cc", _REDPANDA[1])

REDPANDA = Image(
    "docker.redpanda.com/redpandadata/redpanda",
    "v26.2.",
    # That curl is in it is seen from the start-up probe, which is run in the container.
    programs=Fact(
        names("bash sh cp sed rpk curl"),
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
    variables=Fact(names("REDPANDA_* RP_BOOTSTRAP_USER"), _REDPANDA_RPK),
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
    programs=Fact(names("bash sh curl sleep dirname"), _DEBEZIUM_KAFKA, STAND_IN),
    user=Fact(User("kafka", 1001, starts_as_root=False), _DEBEZIUM_KAFKA, STAND_IN),
    variables=Fact(
        names(
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

_REDIS = "redis/docker-library-redis"
_REDIS_FILE = Source(_REDIS, "debian/Dockerfile", "0076c90a8028")  # of 8.6.4
_REDIS_ENTRY = Source(_REDIS, "debian/docker-entrypoint.sh", "0d55be9aa67b")

REDIS = Image(
    "redis",
    "8.6.",
    programs=Fact(names("sh bash redis-server redis-cli"), _REDIS_FILE),
    user=Fact(User("redis", 999, starts_as_root=True), _REDIS_FILE),
    defaults={
        # Compiled in: who asks from outside the container needs no password.
        "protected-mode": Fact("no", _REDIS_FILE),
        "modules that the entry point loads": Fact("/usr/local/lib/redis/modules", _REDIS_ENTRY),
    },
)

PYPY = Image(
    "pypy",
    "3.11-7.3.",
    programs=Fact(
        names("bash sh pypy3 ln mv uname basename"),
        Source("docker-library/pypy", "3.11/bookworm/Dockerfile", "84c50d19b0b9"),
    ),
    # How large it is without: best_nursery_size_for_L2cache in env.py, beside it.
    variables=Fact(
        names("PYPY_GC_NURSERY"),
        Source("pypy/pypy", "rpython/memory/gc/incminimark.py", "00d4ec751d83"),
    ),
)
PYTHON = Image(
    "python",
    "3.11.",
    programs=Fact(
        names("sh python pip test"),
        Source("docker-library/python", "3.11/slim-bookworm/Dockerfile", "4f07059567fa"),
    ),
)
MAVEN = Image(
    "maven",
    "3.9.",
    programs=Fact(
        names("sh mvn"),
        Source("carlossg/docker-maven", "eclipse-temurin-21-noble/Dockerfile", "0170c5bc5c25"),
    ),
)

OF_THE_STACK = (MYSQL, REDPANDA, DEBEZIUM, PYPY, PYTHON, MAVEN)
ON_REQUEST = (REDIS,)  # of the stack too, with an engine that needs it
OF_ENGINES: Mapping[str, tuple[Image, ...]] = {
    engine: tuple(module.IMAGES) for engine, module in plugins.of_all("published").items()
}
IMAGES: Mapping[str, Image] = {
    image.name: image
    for images in (OF_THE_STACK, ON_REQUEST, *OF_ENGINES.values())
    for image in images
}
