"""Contract of a native service: how to launch it, when it is ready, and its version."""

import importlib
import importlib.util
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from racetrack import environment, plugins
from racetrack.clock import attempts
from racetrack.config import Settings

SERVICES = "racetrack.stack.services"
CHECK_EVERY_S = 0.1


class NotReady(Exception):
    """A service is still starting; the message names what is missing."""


@dataclass(frozen=True)
class Context:
    """Settings, folders and components for one service.

    `work` is the service's private folder, on tmpfs if possible. It is empty before the first
    launch, contains the service's data if a killed service is launched again, and is removed after
    the run. `parts` maps each installed part (component) to its folder.
    """

    settings: Settings
    work: Path
    parts: Mapping[str, Path]
    say: Callable[[str], None] = lambda _line: None  # reports to the user that a step takes long
    stopping: threading.Event = field(default_factory=threading.Event)  # set when the run is ending
    services: Collection[str] = ()  # names of all services of the stack


class FasterStart(Protocol):
    """A file that is made once, after a run, and makes later starts of a service faster."""

    @property
    def peers(self) -> Sequence[str]:
        """Services that must be running while the file is made."""

    def exists(self, parts: Mapping[str, Path]) -> bool:
        """Return whether the file has been made."""

    def make(self, context: Context) -> None:
        """Make the file. A failure is ignored: the service can start without the file."""


@dataclass(frozen=True)
class Launch:
    """A process to start without a shell. Only `env` may contain secrets."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    faster: FasterStart | None = None


def spawn(
    launch: Launch, output: IO[bytes] | None, mark: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Start a process with `mark` in its environment.

    The process writes to `output`; None means this process's standard output. Its environment and
    umask do not depend on the user's. It gets its own session, so that Ctrl-C on the terminal does
    not reach it: the harness stops services in its own order.
    """
    return subprocess.Popen(
        launch.argv,
        env=environment.of_program({**launch.env, **mark}),
        umask=environment.UMASK,
        cwd=launch.cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


class NativeService(Protocol):
    """A native service, defined by a module of its own. `launch` runs in a thread and may block."""

    name: str
    parts: tuple[str, ...]  # required components, see racetrack/install
    after: tuple[str, ...]  # services that, if started, must be ready before `launch` is called
    ready_within_s: float

    def ports(self, settings: Settings) -> Mapping[str, int]:
        """Return setting → TCP port, for all ports on which the service will listen."""

    def launch(self, context: Context) -> Launch:
        """Write configuration and data into `context.work`, but keep existing data; return the
        process to start."""

    def check(self, context: Context) -> None:
        """Check that the service is usable.

        May also perform the last step of the service's start, such as registering a connector.
        Idempotent.

        Raises:
            NotReady: the service is not usable yet; the caller retries for `ready_within_s`.
        """

    def versions(self, context: Context) -> Mapping[str, str]:
        """Return component → version of the programs that this service runs."""


def wait_until_ready(
    service: NativeService, context: Context, within_s: float, before_check: Callable[[], None]
) -> None:
    """Repeat the service's check until it passes. `before_check` may raise to end the wait.

    Raises:
        NotReady: the service was not ready in time.
    """
    missing = NotReady("it was not checked")
    for _ in attempts(within_s, CHECK_EVERY_S):
        before_check()
        try:
            service.check(context)
        except NotReady as error:
            missing = error
        else:
            return
    raise missing


def runs_as_processes(name: str) -> bool:
    """Return whether there is a native service with this name, as `find_service` looks for it."""
    of_the_stack = importlib.util.find_spec(f"{SERVICES}.{name}")
    return bool(of_the_stack or plugins.service_module(name))


def find_service(name: str) -> NativeService:
    """Return the service with this name.

    It is `SERVICE` in the module of the same name in `racetrack/stack/services/` or in an engine's
    `services/`.
    """
    module = plugins.service_module(name) or importlib.import_module(f"{SERVICES}.{name}")
    service: NativeService = module.SERVICE
    return service
