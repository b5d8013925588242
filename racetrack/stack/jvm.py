"""Options that all Java services share, and class paths without duplicates."""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from racetrack.config import Settings
from racetrack.errors import SetupError

# Heaps of the schema registry, which holds a few small schemas, and of Kafka Connect, which runs
# one connector: no setting changes what they need. docker-compose.yml has the same.
REGISTRY_HEAP, CONNECT_HEAP = "128m", "512m"
# Log one line per garbage collection pause, with the time at which the pause ended.
LOG_GC_PAUSES = "-Xlog:gc:stdout:timemillis,tags"
# A fixed locale, independent of the machine's: in a Turkish locale, the upper case of "classic"
# would not be a valid protocol name.
LANGUAGE = ("-Duser.language=en", "-Duser.country=US")


def java() -> Path:
    """Return the path of the `java` on PATH, with links resolved. bootstrap.sh put it there.

    Raises:
        SetupError: there is no `java` on PATH.
    """
    found = shutil.which("java")
    if found is None:
        raise SetupError("No `java` on PATH. Install Java 17 or 21, then try again.")
    return Path(found).resolve()


def java_version() -> str:
    """Return the version in the `release` file of the Java on PATH, such as `17.0.15`."""
    release = java().parent.parent / "release"
    for line in release.read_text().splitlines():
        if line.startswith("JAVA_VERSION="):
            return line.split("=", 1)[1].strip('"')
    raise SetupError(f"{release} names no JAVA_VERSION. Install Java 17 or 21.")


def for_every_jvm(settings: Settings) -> list[str]:
    """Return the options of every JVM: a fixed locale, and JVM_OPTIONS, which may override it."""
    return [*LANGUAGE, *shlex.split(settings.jvm_options)]


def options(heap: str, work: Path, settings: Settings) -> list[str]:
    """Return the options of every Java service.

    They set its heap, send crash reports to its log, and keep its temporary files in `work`.
    """
    temporary = work / "tmp"
    temporary.mkdir(exist_ok=True)
    return [
        f"-Xmx{heap}",
        f"-Djava.io.tmpdir={temporary}",
        "-Djava.awt.headless=true",
        "-Dfile.encoding=UTF-8",
        "-XX:-UsePerfData",  # it would write /tmp/hsperfdata_*
        "-XX:+ErrorFileToStdout",
        "-XX:+ExitOnOutOfMemoryError",
        *for_every_jvm(settings),
    ]


def only_warnings() -> list[str]:
    """Return options with which slf4j-simple logs warnings and errors only, with the time."""
    return [
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    ]


def for_a_small_part() -> list[str]:
    """Return options that minimise CPU time and memory, for services that are not measured."""
    return ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def properties(file: Path, settings: Mapping[str, str]) -> Path:
    """Write a Java properties file and return its path."""
    file.write_text("".join(f"{key}={_escaped(value)}\n" for key, value in settings.items()))
    return file


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def class_path(*folders: Path) -> str:
    """Return a class path of all jars in the folders.

    Its order is fixed, because an archive of loaded classes is valid for one class path only. A jar
    is left out if an earlier folder contains another version of it.
    """
    chosen: dict[str, Path] = {}
    for folder in folders:
        for jar in sorted(folder.glob("*.jar")):
            chosen.setdefault(_artifact(jar), jar)
    return ":".join(map(str, chosen.values()))


def _artifact(jar: Path) -> str:
    """Return the artifact name of a jar: `kafka-clients-4.3.1.jar` → `kafka-clients`."""
    return re.split(r"-\d", jar.stem, maxsplit=1)[0]
