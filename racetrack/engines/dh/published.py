"""What Deephaven's published image is like: see racetrack/stack/compose/published.py."""

from racetrack.stack.compose.image_facts import STAND_IN, Fact, Flags, Image, Source, User, names

_DEEPHAVEN = "deephaven/deephaven-server-docker", "0ab4456bfb65"
_DEEPHAVEN_FILE = Source(_DEEPHAVEN[0], "contexts/server/Dockerfile", _DEEPHAVEN[1])
_DEEPHAVEN_APP = Source(
    "deephaven/deephaven-core",
    "server/jetty-app/build.gradle",
    "c0dcdf13e634",
    packaged_as="deephaven-core's `server/jetty-app`",
)

DEEPHAVEN = Image(
    "ghcr.io/deephaven/server",
    "42.",
    # No curl and no wget.
    programs=Fact(names("sh /opt/grpc_health_probe/grpc_health_probe"), _DEEPHAVEN_FILE, STAND_IN),
    user=Fact(User("root", 0, starts_as_root=True), _DEEPHAVEN_FILE, STAND_IN),
    data=Fact("/data", _DEEPHAVEN_FILE, STAND_IN),
    variables=Fact(
        names("START_OPTS JAVA_OPTS EXTRA_CLASSPATH DEEPHAVEN_*_DIR"), _DEEPHAVEN_FILE, STAND_IN
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

IMAGES = (DEEPHAVEN,)
