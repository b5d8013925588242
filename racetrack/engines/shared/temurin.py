"""What the published image of Java is like that engines run on whose program is built here: see
racetrack/stack/compose/published.py."""

from racetrack.stack.compose.image_facts import Fact, Flags, Image, Source, names

_TEMURIN = "adoptium/containers"
_FILE = Source(_TEMURIN, "17/jre/ubuntu/noble/Dockerfile", "43253e3a4746")
_ENTRY = Source(_TEMURIN, "17/jre/ubuntu/noble/entrypoint.sh", "498fb5bbb81d")

TEMURIN = Image(
    "eclipse-temurin",
    "17.0.",
    programs=Fact(names("bash sh test java"), _FILE),
    # Java itself reads the first; the entrypoint, which adds to it, the second.
    variables=Fact(names("JAVA_TOOL_OPTIONS USE_SYSTEM_CA_CERTS"), _ENTRY),
    jvm=Fact((Flags("JAVA_TOOL_OPTIONS"),), _ENTRY),
)
