"""What Flink's published image is like: see racetrack/stack/compose/published.py."""

from racetrack.stack.compose.image_facts import STAND_IN, Fact, Flags, Image, Source, User, names

_FLINK = "apache/flink-docker", "983be3455636"
_FLINK_FILE = Source(_FLINK[0], "2.2/scala_2.12-java17-ubuntu/Dockerfile", _FLINK[1])
_FLINK_ENTRY = Source(_FLINK[0], "2.2/scala_2.12-java17-ubuntu/docker-entrypoint.sh", _FLINK[1])
# Its scripts and config.yaml are in the package apache-flink of PyPI, too.
_DIST, _AT, _PACKAGE = "flink-dist/src/main", "release-2.3.0", "`apache-flink`"
_FLINK_CONFIG = Source("apache/flink", f"{_DIST}/resources/config.yaml", _AT, _PACKAGE)
_FLINK_SCRIPT = Source("apache/flink", f"{_DIST}/flink-bin/bin/flink-console.sh", _AT, _PACKAGE)

FLINK = Image(
    "flink",
    "2.3.",
    programs=Fact(
        names("bash sh curl"),
        Source("adoptium/containers", "17/jre/ubuntu/noble/Dockerfile", "d8d18d67a32e"),
    ),
    user=Fact(User("flink", 9999, starts_as_root=False), _FLINK_FILE, STAND_IN),
    data=Fact("/opt/flink", _FLINK_FILE, STAND_IN),
    variables=Fact(
        names("FLINK_PROPERTIES JVM_ARGS TASK_MANAGER_NUMBER_OF_TASK_SLOTS DISABLE_JEMALLOC"),
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

IMAGES = (FLINK,)
