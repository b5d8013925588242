"""What all Java services share: which Java, its options, class paths without doubles."""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from racetrack.config import Settings
from racetrack.errors import SetupError

# For an engine: a line for each time that it stood still to collect garbage, with when that ended.
TELLS_OF_PAUSES = "-Xlog:gc:stdout:timemillis,tags"
# In Turkish, the upper case of "classic" is no name of a protocol.
LANGUAGE = ("-Duser.language=en", "-Duser.country=US")


def java() -> Path:
    """The `java` on PATH, links resolved.

    Raises:
        SetupError: there is none.
    """
    found = shutil.which("java")
    if found is None:
        raise SetupError("No `java` on PATH. Install openjdk-17-jre-headless, then try again.")
    return Path(found).resolve()


def java_version() -> str:
    """What the `release` file of that Java says, such as `17.0.15`."""
    release = java().parent.parent / "release"
    for line in release.read_text().splitlines():
        if line.startswith("JAVA_VERSION="):
            return line.split("=", 1)[1].strip('"')
    raise SetupError(f"{release} names no JAVA_VERSION. Install openjdk-17-jre-headless.")


def for_every_jvm(settings: Settings) -> list[str]:
    """Language and country, whatever the machine's are, and the user's JVM_OPTIONS, which win."""
    return [*LANGUAGE, *shlex.split(settings.jvm_options)]


def options(heap: str, work: Path, settings: Settings) -> list[str]:
    """For every Java service: its heap; crash reports in its log; no file outside `work`."""
    temporary = work / "tmp"
    temporary.mkdir(exist_ok=True)
    return [
        f"-Xmx{heap}",
        f"-Djava.io.tmpdir={temporary}",
        "-Djava.awt.headless=true",
        "-Dfile.encoding=UTF-8",
        "-XX:-UsePerfData",  # or a file in /tmp/hsperfdata_*
        "-XX:+ErrorFileToStdout",
        "-XX:+ExitOnOutOfMemoryError",
        *for_every_jvm(settings),
    ]


def only_warnings() -> list[str]:
    """For programs that log by slf4j-simple: what went wrong, with the time of day."""
    return [
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    ]


def for_a_small_part() -> list[str]:
    """For services whose speed and cost are not measured: least CPU and memory at the start."""
    return ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def properties(file: Path, settings: Mapping[str, str]) -> Path:
    """Write a Java properties file; the file."""
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return file


def class_path(*folders: Path) -> str:
    """All jars of the folders, in a fixed order: an archive fits one class path only.

    A jar of which an earlier folder has a version already is left out.
    """
    chosen: dict[str, Path] = {}
    for folder in folders:
        for jar in sorted(folder.glob("*.jar")):
            chosen.setdefault(_artifact(jar), jar)
    return ":".join(map(str, chosen.values()))


def _artifact(jar: Path) -> str:
    """`kafka-clients-4.3.1.jar` → `kafka-clients`."""
    return re.split(r"-\d", jar.stem, maxsplit=1)[0]
