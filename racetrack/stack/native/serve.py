"""Runs native services in the foreground, as the main process of a container.

    python -m racetrack.stack.native.serve broker registry

The services listen on BIND_ADDRESS and write to standard output. All of them end on SIGTERM, or
when one of them ends. Their data is in the folder RACETRACK_WORK (default: /var/lib/racetrack),
which is emptied at the start. When all services have passed their checks, the file `ready` is
created there. RACETRACK_PARTS is the folder with the installed components (default: `parts` in the
folder that contains the package `racetrack`).

--prepare is for building an image: it makes the files that speed up later starts of these services
(see prebuilt.py), then ends. If several services are given, the last one is prepared, and the
others run meanwhile, because it needs them. They listen on free ports, because a build may share
the machine's network.

Exit codes: 0 ended by SIGTERM, or prepared; 1 a service did not start, or ended unexpectedly; 2 a
setting is invalid.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from graphlib import TopologicalSorter
from pathlib import Path

from racetrack import environment
from racetrack.config import REPO, Settings, every_setting, load
from racetrack.errors import RacetrackError
from racetrack.stack import net
from racetrack.stack.service import (
    Context,
    FasterStart,
    Launch,
    NativeService,
    NotReady,
    find_service,
    spawn,
    wait_until_ready,
)

WORK = "/var/lib/racetrack"
READY = "ready"
# As long as start_period in docker-compose.yml: the peers of a service may still be starting.
PATIENCE_S = 180.0
GRACE_S = 8.0


class StopRequested(BaseException):
    """SIGTERM or SIGINT was received."""


class Foreground:
    """Services that run as children of this process."""

    def __init__(
        self,
        settings: Settings,
        parts: Path,
        work: Path,
        patience_s: float = PATIENCE_S,
        grace_s: float = GRACE_S,
    ) -> None:
        """Each service has `patience_s` seconds to become ready, and `grace_s` seconds to end."""
        self._settings, self._work = settings, work
        self._patience_s, self._grace_s = patience_s, grace_s
        self._parts = {path.name: path.resolve() for path in parts.iterdir()}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._faster: list[tuple[NativeService, FasterStart]] = []
        _empty(work)

    def bring_up(self, services: Sequence[NativeService]) -> None:
        """Start the services and return when all have passed their checks.

        Raises:
            RacetrackError: a service did not start.
        """
        named = {service.name: service for service in services}
        after = {name: [n for n in s.after if n in named] for name, s in named.items()}
        began = time.monotonic()
        for name in TopologicalSorter(after).static_order():
            for earlier in after[name]:
                self._wait_ready(named[earlier])
            self._start(named[name])
        for service in services:
            self._wait_ready(service)
            _say(f"{service.name} ready after {time.monotonic() - began:.1f} s")

    def launch(self, service: NativeService) -> Launch:
        """Let a service write its configuration and data, without starting it."""
        launch = service.launch(self._context(service))
        if launch.faster:
            self._faster.append((service, launch.faster))
        return launch

    def make_faster(self) -> None:
        """Make the files that speed up later starts of the launched services."""
        for service, faster in self._faster:
            context = self._context(service)
            if not faster.exists(self._parts):
                _say(f"{service.name}: preparing faster starts")
                faster.make(context)

    def mark_ready(self) -> None:
        """Create the file `ready`, which the container's health check looks for."""
        (self._work / READY).touch()

    def wait(self) -> str:
        """Wait until a service ends; return its name and exit code.

        Also reaps orphaned processes, because this is process 1 of a container.
        """
        names = {process.pid: name for name, process in self._running.items()}
        while True:
            pid, status = os.wait()
            if pid in names:
                return f"{names[pid]} ended ({os.waitstatus_to_exitcode(status)})"

    def end(self) -> None:
        """End all services; those that ignore SIGTERM are killed."""
        (self._work / READY).unlink(missing_ok=True)
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
        give_up = time.monotonic() + self._grace_s
        for process in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, give_up - time.monotonic()))
            # Also ends the service's children, which are in its process group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, service: NativeService) -> None:
        self._running[service.name] = spawn(self.launch(service), output=None, mark={})

    def _wait_ready(self, service: NativeService) -> None:
        context = self._context(service)
        within_s = max(self._patience_s, service.ready_within_s)

        def check_processes() -> None:
            for name, process in self._running.items():
                if (code := process.poll()) is not None:
                    raise RacetrackError(f"{name} did not start: it ended ({code})")

        try:
            wait_until_ready(service, context, within_s, check_processes)
        except NotReady as still_missing:
            raise RacetrackError(
                f"{service.name} was not ready within {within_s:.0f} s: {still_missing}"
            ) from None

    def _context(self, service: NativeService) -> Context:
        work = self._work / service.name
        work.mkdir(mode=0o700, exist_ok=True)
        return Context(self._settings, work, self._parts, _say)


def serve(foreground: Foreground, services: Sequence[NativeService]) -> None:
    """Start the services and wait until one of them ends.

    Raises:
        RacetrackError: a service ended, or did not start.
    """
    foreground.bring_up(services)
    foreground.mark_ready()
    raise RacetrackError(foreground.wait())


def prepare(foreground: Foreground, services: Sequence[NativeService]) -> None:
    """Make the files that speed up later starts of the services."""
    *peers, last = services
    foreground.bring_up(peers)
    foreground.launch(last)
    foreground.make_faster()


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m racetrack.stack.native.serve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("services", nargs="+", metavar="service")
    parser.add_argument("--prepare", action="store_true", help="make later starts faster, then end")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _request_stop)
    signal.signal(signal.SIGINT, _request_stop)
    environment.settle()
    parts = Path(os.environ.get("RACETRACK_PARTS") or REPO / "parts")
    try:
        settings = _on_free_ports(load()) if options.prepare else load()
    except RacetrackError as error:
        _say(str(error))
        return error.exit_code
    foreground = Foreground(settings, parts, Path(os.environ.get("RACETRACK_WORK") or WORK))
    try:
        carry_out = prepare if options.prepare else serve
        carry_out(foreground, [find_service(name) for name in options.services])
    except RacetrackError as error:
        _say(str(error))
        return 1
    except StopRequested:
        _say("ended on request")
    except Exception:
        # SIGTERM may also surface as another exception: if the handler raises in a constructor
        # written in C, the constructor may replace the exception with its own.
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
            raise
        _say("ended on request")
    finally:
        foreground.end()
    return 0


def _on_free_ports(settings: Settings) -> Settings:
    names = [name for name in every_setting() if name.endswith("_port")]
    return net.elsewhere(settings, *names)


def _request_stop(_number: int, _frame: object) -> None:
    # A second signal must not interrupt the clean-up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise StopRequested


def _empty(folder: Path) -> None:
    """Remove what an earlier start left in the folder; keep the folder, which may be a mount."""
    # Services that drop root privileges must still reach their subfolders, so other users may enter
    # the folder (but not list it).
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _say(line: str) -> None:
    print(f"[serve] {line.strip()}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
