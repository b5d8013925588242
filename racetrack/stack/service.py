"""The contract of a native service: how it is launched, when it is ready, and its version."""

import importlib
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from racetrack import environment, plugins
from racetrack.config import Settings

SERVICES = "racetrack.stack.services"


class NotReady(Exception):
    """A service is still starting; the message names what is missing."""


@dataclass(frozen=True)
class Context:
    """What a service may use: the settings, its own folder, and the installed parts.

    `work` is private, on tmpfs if possible, and removed after the run. It is empty at first; when a
    killed service is launched again, it holds that service's data. `parts` maps each part to its
    folder.
    """

    settings: Settings
    work: Path
    parts: Mapping[str, Path]
    say: Callable[[str], None] = lambda _line: None  # reports long work to the user
    stopping: threading.Event = field(default_factory=threading.Event)  # the run is ending
    services: Collection[str] = ()  # all of the stack


class FasterStart(Protocol):
    """A result that is made once, after a run, and makes later starts of a service faster."""

    @property
    def peers(self) -> Sequence[str]:
        """The services that must be up while it is made."""

    def exists(self, parts: Mapping[str, Path]) -> bool:
        """Return whether it has been made."""

    def make(self, context: Context) -> None:
        """Make it, or leave it where that fails: the service starts without it."""


@dataclass(frozen=True)
class Launch:
    """A process to start: no shell, secrets only in `env`, output to the service's log."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    faster: FasterStart | None = None


def spawn(
    launch: Launch, output: IO[bytes] | None, mark: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Start a process with `mark` in its environment; it writes to `output`, or to ours if None.

    Its environment and file mode mask do not depend on the user's. It gets its own session, so a
    Ctrl-C on the terminal does not reach it: the harness ends services in its own order.
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
    """A native service, one module each. `launch` runs in its own thread and may block."""

    name: str
    parts: tuple[str, ...]  # what must be installed, see racetrack/install
    after: tuple[str, ...]  # services that must be ready before `launch` is called
    ready_within_s: float

    def ports(self, settings: Settings) -> Mapping[str, int]:
        """Return the TCP ports it will listen on, by the setting that changes each."""

    def launch(self, context: Context) -> Launch:
        """Write configuration and data into `context.work`, keeping existing data; return what to
        start."""

    def check(self, context: Context) -> None:
        """Return when the service is usable. May do the last step of its start, such as registering
        a connector; idempotent.

        Raises:
            NotReady: not yet; called again until `ready_within_s` is over.
        """

    def versions(self, context: Context) -> Mapping[str, str]:
        """Return part → version of what this service runs."""


def find_service(name: str) -> NativeService:
    """Return a service by name: `SERVICE` of the module of that name in `racetrack/stack/services/`
    or an engine's `services/`."""
    module = plugins.service_module(name) or importlib.import_module(f"{SERVICES}.{name}")
    service: NativeService = module.SERVICE
    return service
