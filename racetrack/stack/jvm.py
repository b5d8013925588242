"""Options that all Java services share, and class paths without duplicates."""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from racetrack.config import Settings
from racetrack.errors import SetupError

# Logs a line per garbage collection pause, with its end.
LOG_GC_PAUSES = "-Xlog:gc:stdout:timemillis,tags"
# In a Turkish locale, the upper case of "classic" is not a valid protocol name.
LANGUAGE = ("-Duser.language=en", "-Duser.country=US")


def java() -> Path:
    """Return the `java` on PATH, links resolved.

    Raises:
        SetupError: there is none.
    """
    found = shutil.which("java")
    if found is None:
        raise SetupError("No `java` on PATH. Install openjdk-17-jre-headless, then try again.")
    return Path(found).resolve()


def java_version() -> str:
    """Return the version in that Java's `release` file, such as `17.0.15`."""
    release = java().parent.parent / "release"
    for line in release.read_text().splitlines():
        if line.startswith("JAVA_VERSION="):
            return line.split("=", 1)[1].strip('"')
    raise SetupError(f"{release} names no JAVA_VERSION. Install openjdk-17-jre-headless.")


def for_every_jvm(settings: Settings) -> list[str]:
    """Return language and country, independent of the machine's, and the user's JVM_OPTIONS, which
    override them."""
    return [*LANGUAGE, *shlex.split(settings.jvm_options)]


def options(heap: str, work: Path, settings: Settings) -> list[str]:
    """Return the options of every Java service: its heap, crash reports in its log, no file outside
    `work`."""
    temporary = work / "tmp"
    temporary.mkdir(exist_ok=True)
    return [
        f"-Xmx{heap}",
        f"-Djava.io.tmpdir={temporary}",
        "-Djava.awt.headless=true",
        "-Dfile.encoding=UTF-8",
        "-XX:-UsePerfData",  # which writes /tmp/hsperfdata_*
        "-XX:+ErrorFileToStdout",
        "-XX:+ExitOnOutOfMemoryError",
        *for_every_jvm(settings),
    ]


def only_warnings() -> list[str]:
    """Return options for programs that log by slf4j-simple: warnings only, with the time."""
    return [
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    ]


def for_a_small_part() -> list[str]:
    """Return options that minimise CPU and memory, for services whose speed is not measured."""
    return ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def properties(file: Path, settings: Mapping[str, str]) -> Path:
    """Write a Java properties file and return its path."""
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file


def class_path(*folders: Path) -> str:
    """Return a class path of all jars in the folders, in a fixed order: an archive fits one class
    path only.

    A jar is left out if an earlier folder has a version of it.
    """
    chosen: dict[str, Path] = {}
    for folder in folders:
        for jar in sorted(folder.glob("*.jar")):
            chosen.setdefault(_artifact(jar), jar)
    return ":".join(map(str, chosen.values()))


def _artifact(jar: Path) -> str:
    """Return a jar's artifact: `kafka-clients-4.3.1.jar` → `kafka-clients`."""
    return re.split(r"-\d", jar.stem, maxsplit=1)[0]
