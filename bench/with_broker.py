"""Runs the load generator's benchmark between starting and stopping the services that it needs.
`running` does this for other benchmarks, too."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from racetrack import install, terminal
from racetrack.config import load
from racetrack.errors import RacetrackError
from racetrack.machine_lock import machine_lock
from racetrack.stack.native.stack import NativeStack
from racetrack.stack.services import loadgen

BENCH = Path(__file__).with_name("loadgen_bench.py")


def main() -> int:
    """Run `python with_broker.py [arguments of loadgen_bench.py]`; return its exit code."""
    arguments = [sys.executable, str(BENCH), *sys.argv[1:]]
    if {"--help", "-h"} & set(sys.argv[1:]):
        return subprocess.run(arguments, check=False).returncode
    # "clients" measures a complete load generator, which needs MySQL; --brief measures all.
    with_clients = any(word.endswith(("clients", "--brief")) for word in sys.argv)
    with running(["broker", "mysql", "loadgen"] if with_clients else ["broker"]):
        return subprocess.run(arguments, env=environment(), check=False).returncode


@contextmanager
def running(services: Sequence[str]) -> Iterator[NativeStack]:
    """Start services; stop them at the end, also after a signal."""
    with terminal.guarded(tell) as guard, machine_lock(), tempfile.TemporaryDirectory() as logs:
        stack = NativeStack(load())
        stack.prepare(services, tell)
        try:
            with guard.restoring():
                stack.start(services, Path(logs), tell)
                yield stack
        finally:
            guard.disarm()
            stack.stop(tell)


def environment() -> dict[str, str]:
    """Return the benchmark's environment: addresses of services, and paths of programs."""
    settings = load()
    parts = install.ensure(["loadgen", "kafka"], install.read_versions(), tell)
    librdkafka = next((parts["loadgen"] / "lib").glob("librdkafka*.so*"))
    return {
        **os.environ,
        "KAFKA_BOOTSTRAP": f"{settings.reach_address}:{settings.kafka_port}",
        "LOADGEN_ENDPOINT": f"{settings.reach_address}:{settings.loadgen_port}",
        "KAFKA_JARS": str(parts["kafka"] / "libs"),
        "LIBRDKAFKA": str(librdkafka),
        "PYPY": str(parts["loadgen"] / "bin/pypy3"),
        **loadgen.PYPY,
    }


def tell(line: str) -> None:
    """Print a line on standard error; standard output is for results."""
    print(line, file=sys.stderr)


def exit_code(benchmark: Callable[[], int]) -> int:
    """Run a benchmark; return its exit code. Errors and signals have those of Racetrack."""
    try:
        return benchmark()
    except RacetrackError as error:
        tell(f"Error: {error}")
        return error.exit_code
    except terminal.Interrupted as interrupted:
        return interrupted.exit_code


if __name__ == "__main__":
    sys.exit(exit_code(main))
