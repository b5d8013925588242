"""Runs inside Deephaven's own venv: starts the embedded server and serves until SIGTERM or SIGINT.

Everything comes from the environment, so that no secret shows in a process list:
`DEEPHAVEN_HOST`, `DEEPHAVEN_PORT`, `DEEPHAVEN_HEAP` (`4g`), `DEEPHAVEN_CYCLE_MS`, `DEEPHAVEN_PSK`,
`DEEPHAVEN_DATA` (a private folder), `RACETRACK_SCRIPTS` (shown in the IDE's file list), and
optionally `DEEPHAVEN_JVM_ARGS` (split like a shell does). What the demo needs is passed through:
`KAFKA_BOOTSTRAP`, `SCHEMA_REGISTRY_URL`.

Prints `RACETRACK ready url=… start_ms=…` once the port answers. Ends at once by SIGTERM or SIGINT.
"""

import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

LOGBACK = Path(__file__).with_name("deephaven-logback.xml")


def jvm_args(env: Mapping[str, str]) -> list[str]:
    """The JVM's arguments. They are handed to the JVM inside this process, not to a command line."""
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
        *shlex.split(env.get("DEEPHAVEN_JVM_ARGS", "")),
    ]


def make_folders(env: Mapping[str, str]) -> None:
    """Create the folders named in `jvm_args`, with the scripts where the IDE lists notebooks."""
    data = Path(env["DEEPHAVEN_DATA"])
    notebooks = data / "data" / "storage" / "notebooks"
    for folder in (notebooks, data / "cache", data / "config", data / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    shown = notebooks / "scripts"
    if not shown.is_symlink():
        shown.symlink_to(Path(env["RACETRACK_SCRIPTS"]).resolve(), target_is_directory=True)


def main() -> None:
    """Start the server, then wait for a signal."""
    started = time.monotonic()
    # Python runs its handlers between two steps of the main thread, which is inside the JVM for
    # seconds while it starts. The system's default ends the process at any time, and there is
    # nothing to save: the data folder is private and goes with the run.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    make_folders(os.environ)
    # Python put this file's folder first on its path, where this file hides the package of its
    # own name, and the neighbours might hide others.
    sys.path.remove(str(Path(__file__).resolve().parent))
    from deephaven_server import Server  # type: ignore[import-not-found]

    host, port = os.environ["DEEPHAVEN_HOST"], int(os.environ["DEEPHAVEN_PORT"])
    Server(host=host, port=port, jvm_args=jvm_args(os.environ)).start()
    elapsed_ms = round((time.monotonic() - started) * 1000)
    os.write(1, f"RACETRACK ready url=http://{host}:{port}/ide/ start_ms={elapsed_ms}\n".encode())
    sys.stdout.flush()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
