"""Runs inside Deephaven's own venv: starts the embedded server and serves until SIGTERM or SIGINT.

Everything comes from the environment, so that no secret shows in a process list:
`DEEPHAVEN_HOST`, `DEEPHAVEN_PORT`, `DEEPHAVEN_HEAP` (`4g`), `DEEPHAVEN_CYCLE_MS`, `DEEPHAVEN_PSK`,
`DEEPHAVEN_DATA` (a private folder), `RACETRACK_SCRIPTS` (shown in the IDE's file list), and
optionally `DEEPHAVEN_JVM_ARGS` (split as a shell would). `KAFKA_BOOTSTRAP` and
`SCHEMA_REGISTRY_URL` are for the scripts that it runs.

Prints `RACETRACK ready url=… start_ms=…` once the port answers. Ends at once by SIGTERM or SIGINT.

`DEEPHAVEN_CLASS_ARCHIVE` names a file in which the JVM finds classes already parsed. It makes a
start faster and changes nothing after it. With `--write-class-archive` SIGTERM makes the JVM write
that file at its end. It fits one JVM and one set of jars; the JVM ignores it else.

`DEEPHAVEN_FORMULAS` names a zip file of compiled formulas, made by earlier runs. Deephaven looks
for the class of a formula in its session's folder, and compiles what is not there: the first ones
in a JVM take a second each. The bytecode that runs is the same. SIGTERM adds what is new.
"""

import contextlib
import os
import shlex
import signal
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

LOGBACK = Path(__file__).with_name("logback.xml")
WRITE_ARCHIVE = "--write-class-archive"
# In the source of every formula, and so in the name of its class, is the version of the imports.
# Deephaven draws a random one at each start, and again when a script adds an import.
IMPORTS_VERSION = "as delivered"
# A person who tries formulas must not make the file grow for ever.
MAX_CLASSES = 2000


def jvm_args(env: Mapping[str, str], *, write_archive: bool = False) -> list[str]:
    """Return the JVM's arguments: for the JVM inside this process, not for a command line."""
    data = Path(env["DEEPHAVEN_DATA"])
    return [
        f"-Xmx{env['DEEPHAVEN_HEAP']}",
        f"-DPeriodicUpdateGraph.targetCycleDurationMillis={env['DEEPHAVEN_CYCLE_MS']}",
        f"-Dauthentication.psk={env['DEEPHAVEN_PSK']}",
        f"-Dlogback.configurationFile={LOGBACK}",
        f"-Ddeephaven.dataDir={data / 'data'}",
        f"-Ddeephaven.cacheDir={data / 'cache'}",
        f"-Ddeephaven.configDir={data / 'config'}",
        f"-Djava.io.tmpdir={data / 'tmp'}",
        f"-XX:ErrorFile={data / 'hs_err.log'}",
        *archive_args(env.get("DEEPHAVEN_CLASS_ARCHIVE"), write=write_archive),
        *shlex.split(env.get("DEEPHAVEN_JVM_ARGS", "")),
    ]


def archive_args(archive: str | None, *, write: bool) -> list[str]:
    """Return the arguments that make the JVM write the class archive at its exit, or use an
    existing one."""
    if archive is None:
        return []
    if write:
        return [f"-XX:ArchiveClassesAtExit={archive}"]
    return [f"-XX:SharedArchiveFile={archive}"] if Path(archive).exists() else []


def make_folders(env: Mapping[str, str]) -> None:
    """Create the folders named in `jvm_args`, with the scripts where the IDE lists notebooks."""
    data = Path(env["DEEPHAVEN_DATA"])
    notebooks = data / "data" / "storage" / "notebooks"
    for folder in (notebooks, data / "cache", data / "config", data / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    shown = notebooks / "scripts"
    if not shown.is_symlink():
        shown.symlink_to(Path(env["RACETRACK_SCRIPTS"]).resolve(), target_is_directory=True)


def start_server(env: Mapping[str, str], *, write_archive: bool) -> None:
    """Start the JVM and the server in this process, and say so once its port answers."""
    started = time.monotonic()
    # Python put this file's folder first on its path, where this file hides the package of its
    # own name, and the neighbours might hide others.
    sys.path.remove(str(Path(__file__).resolve().parent))
    from deephaven_server import Server  # type: ignore[import-not-found]

    host, port = env["DEEPHAVEN_HOST"], int(env["DEEPHAVEN_PORT"])
    Server(host=host, port=port, jvm_args=jvm_args(env, write_archive=write_archive)).start()
    if formulas := env.get("DEEPHAVEN_FORMULAS"):
        reuse_formulas(Path(formulas), session_folder(env))
    start_ms = round((time.monotonic() - started) * 1000)
    # Not print(): Deephaven sends that to the IDE's console too, and buffers it.
    os.write(1, f"RACETRACK ready url=http://{host}:{port}/ide/ start_ms={start_ms}\n".encode())


def session_folder(env: Mapping[str, str]) -> Path:
    """Return the folder in which the server's script session keeps the classes of its formulas."""
    sessions = Path(env["DEEPHAVEN_DATA"]) / "cache" / "script-session-classes"
    # A server that was killed and started again has left one, too.
    return max(sessions.iterdir(), key=lambda folder: folder.stat().st_mtime)


def reuse_formulas(formulas: Path, folder: Path) -> None:
    """Put the formulas of earlier runs where Deephaven looks before it compiles one."""
    from deephaven.execution_context import get_exec_ctx  # type: ignore[import-not-found]

    if kept_formulas(formulas):
        with zipfile.ZipFile(formulas) as file:
            file.extractall(folder)
    get_exec_ctx().j_exec_ctx.getQueryLibrary().updateVersionString(IMPORTS_VERSION)


def kept_formulas(formulas: Path) -> set[str]:
    """Return the names of the classes in the zip file; none if it is missing or damaged."""
    with (
        contextlib.suppress(OSError, zipfile.BadZipFile),
        zipfile.ZipFile(formulas) as file,
    ):
        return set(file.namelist()) if file.testzip() is None else set()
    return set()


def keep_formulas(formulas: Path, folder: Path, at_most: int = MAX_CLASSES) -> None:
    """Write the formulas that were compiled by now to the zip file, if there are new ones."""
    # Deephaven moves a formula's classes here when all of them are written.
    classes = {str(path.relative_to(folder)): path for path in folder.glob("io/**/*.class")}
    if classes.keys() <= kept_formulas(formulas) or len(classes) > at_most:
        return
    unfinished = formulas.with_name(f".{os.getpid()}-{formulas.name}")
    # Who may not write there does without.
    with contextlib.suppress(OSError):
        formulas.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(unfinished, "w") as file:
            for name, path in sorted(classes.items()):
                file.write(path, name)
        unfinished.rename(formulas)


def keep_formulas_at_end(env: Mapping[str, str]) -> None:
    """From now on SIGTERM keeps the formulas before it ends the process."""

    def keep_and_end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        keep_formulas(Path(env["DEEPHAVEN_FORMULAS"]), session_folder(env))
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, keep_and_end)


def write_archive_at_end() -> None:
    """From now on SIGTERM ends the process as a JVM ends, which is when it writes its archive."""
    import jpy  # type: ignore[import-not-found]

    system = jpy.get_type("java.lang.System")
    signal.signal(signal.SIGTERM, lambda _number, _frame: system.exit(0))


def main(arguments: list[str]) -> None:
    """Start the server, then wait for a signal."""
    # Python runs its handlers between two steps of the main thread, which is inside the JVM for
    # seconds while it starts. The system's default ends the process at any time, and there is
    # nothing to save yet: the data folder is private and goes with the run.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    make_folders(os.environ)
    write_archive = arguments == [WRITE_ARCHIVE]
    start_server(os.environ, write_archive=write_archive)
    if write_archive:
        write_archive_at_end()
    elif "DEEPHAVEN_FORMULAS" in os.environ:
        keep_formulas_at_end(os.environ)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
