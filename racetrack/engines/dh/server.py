"""Starts Deephaven's embedded server and serves until SIGTERM or SIGINT. Runs in Deephaven's own
Python environment.

All settings are environment variables, so that no secret appears in a process list:
`DEEPHAVEN_HOST`, `DEEPHAVEN_PORT`, `DEEPHAVEN_HEAP` (such as `4g`), `DEEPHAVEN_CYCLE_MS`,
`DEEPHAVEN_PSK`, `DEEPHAVEN_DATA` (a private folder), `RACETRACK_SCRIPTS` (a folder shown in the
IDE's file list), and optionally `DEEPHAVEN_JVM_ARGS` (split as a shell would). The demo's scripts
read `KAFKA_BOOTSTRAP` and `SCHEMA_REGISTRY_URL`.

The process prints `RACETRACK ready url=… start_ms=…` once the port answers.

Two files make the start faster, without changing the code that runs:

- `DEEPHAVEN_CLASS_ARCHIVE` is a JVM class data archive. With `--write-class-archive`, the JVM
  writes it on SIGTERM. The JVM ignores an archive that was written by another JVM or with other
  jars.
- `DEEPHAVEN_FORMULAS` is a zip file with the classes of formulas compiled in earlier runs.
  Deephaven looks for the class of a formula in its session's folder, and compiles the formula if it
  is missing; the first compilations in a JVM take about a second each. On SIGTERM, new classes are
  added.
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
# The source of a formula contains a version of the session's imports, so the name of its class
# depends on this version. By default Deephaven chooses a random version at each start, and again
# whenever a script adds an import. A fixed version makes the names repeatable.
IMPORTS_VERSION = "as delivered"
# Keep no more classes than this, so that the file stays small when a user tries out many formulas.
MAX_CLASSES = 2000


def jvm_args(env: Mapping[str, str], *, write_archive: bool = False) -> list[str]:
    """Return the arguments of the JVM that runs inside this process."""
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
    """Return the JVM arguments to write the class archive at exit or, without `write`, to use an
    existing archive."""
    if archive is None:
        return []
    if write:
        return [f"-XX:ArchiveClassesAtExit={archive}"]
    return [f"-XX:SharedArchiveFile={archive}"] if Path(archive).exists() else []


def make_folders(env: Mapping[str, str]) -> None:
    """Create the folders named in `jvm_args`, and make the scripts appear in the IDE's file
    list."""
    data = Path(env["DEEPHAVEN_DATA"])
    notebooks = data / "data" / "storage" / "notebooks"
    for folder in (notebooks, data / "cache", data / "config", data / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    shown = notebooks / "scripts"
    if not shown.is_symlink():
        shown.symlink_to(Path(env["RACETRACK_SCRIPTS"]).resolve(), target_is_directory=True)


def start_server(env: Mapping[str, str], *, write_archive: bool) -> None:
    """Start the JVM and the server in this process; print the ready line once the port answers."""
    started = time.monotonic()
    # Python has put this file's folder first on the import path. Modules in it must not hide
    # packages with the same name.
    sys.path.remove(str(Path(__file__).resolve().parent))
    from deephaven_server import Server  # type: ignore[import-not-found]

    host, port = env["DEEPHAVEN_HOST"], int(env["DEEPHAVEN_PORT"])
    Server(host=host, port=port, jvm_args=jvm_args(env, write_archive=write_archive)).start()
    if formulas := env.get("DEEPHAVEN_FORMULAS"):
        reuse_formulas(Path(formulas), session_folder(env))
    start_ms = round((time.monotonic() - started) * 1000)
    # Deephaven redirects print() to the IDE's console, too, and buffers it.
    os.write(1, f"RACETRACK ready url=http://{host}:{port}/ide/ start_ms={start_ms}\n".encode())


def session_folder(env: Mapping[str, str]) -> Path:
    """Return the folder in which the server's script session keeps the classes of its formulas."""
    sessions = Path(env["DEEPHAVEN_DATA"]) / "cache" / "script-session-classes"
    # There is more than one folder if an earlier server was killed; the newest is this server's.
    return max(sessions.iterdir(), key=lambda folder: folder.stat().st_mtime)


def reuse_formulas(formulas: Path, folder: Path) -> None:
    """Extract the classes of earlier runs into the folder in which Deephaven looks for them."""
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
    """Write the classes of all formulas to the zip file, if it lacks any of them."""
    # Deephaven moves a formula's classes into this folder once all of them are written.
    classes = {str(path.relative_to(folder)): path for path in folder.glob("io/**/*.class")}
    if classes.keys() <= kept_formulas(formulas) or len(classes) > at_most:
        return
    unfinished = formulas.with_name(f".{os.getpid()}-{formulas.name}")
    # Without write access, the classes are not kept.
    with contextlib.suppress(OSError):
        formulas.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(unfinished, "w") as file:
            for name, path in sorted(classes.items()):
                file.write(path, name)
        unfinished.rename(formulas)


def tidy_at_end(env: Mapping[str, str]) -> None:
    """Install a handler for SIGTERM that keeps the formulas, removes the socket through which tools
    attach to the JVM, and then ends the process. The JVM itself removes the socket only when Java
    ends the process."""

    def tidy_and_end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        if formulas := env.get("DEEPHAVEN_FORMULAS"):
            keep_formulas(Path(formulas), session_folder(env))
        # HotSpot always creates it in /tmp, whatever java.io.tmpdir is.
        Path(f"/tmp/.java_pid{os.getpid()}").unlink(missing_ok=True)  # noqa: S108
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, tidy_and_end)


def write_archive_at_end() -> None:
    """Install a handler for SIGTERM that calls Java's System.exit, so that the JVM writes its class
    archive."""
    import jpy

    system = jpy.get_type("java.lang.System")
    signal.signal(signal.SIGTERM, lambda _number, _frame: system.exit(0))


def main(arguments: list[str]) -> None:
    """Start the server, then wait for a signal."""
    # Python's own handler for SIGINT would be delayed for seconds while the main thread starts the
    # JVM. The default action ends the process immediately, which is safe: the data folder is
    # private and deleted after the run.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    make_folders(os.environ)
    write_archive = arguments == [WRITE_ARCHIVE]
    start_server(os.environ, write_archive=write_archive)
    if write_archive:
        write_archive_at_end()
    else:
        tidy_at_end(os.environ)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
