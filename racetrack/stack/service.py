"""What one native service must say of itself: how it is launched, when it is ready, its version."""

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
    """A service is still coming up; the message says what is missing."""


@dataclass(frozen=True)
class Context:
    """What a service may know: the settings, its own folders, and where its peers listen.

    `work` is private, on tmpfs where there is one, and gone after the run. It is empty at first;
    when a service that was killed is launched again, it holds what that one left.
    `parts` holds what was installed, one folder a part.
    """

    settings: Settings
    work: Path
    parts: Mapping[str, Path]
    say: Callable[[str], None] = lambda _line: None  # tells the person of long work
    stopping: threading.Event = field(default_factory=threading.Event)  # the run is ending
    services: Collection[str] = ()  # all of the stack


class FasterStart(Protocol):
    """Something that makes later starts of a service faster and is made once, after a run."""

    @property
    def peers(self) -> Sequence[str]:
        """The services that must be up while it is made."""

    def exists(self, parts: Mapping[str, Path]) -> bool:
        """Return whether it has been made."""

    def make(self, context: Context) -> None:
        """Make it, or leave it where that fails: the service starts without."""


@dataclass(frozen=True)
class Launch:
    """One process to start: no shell, secrets only in `env`, output to the service's log."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    faster: FasterStart | None = None


def spawn(
    launch: Launch, output: IO[bytes] | None, mark: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Start it, with `mark` in its environment; it writes to `output`, None: to ours.

    Its environment and its file mode mask are the same, whoever starts it. It gets a session of its
    own: a Ctrl-C on the terminal is for whoever started it, and ends it in an order of its own.
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
    """One module a service. `launch` runs in the service's own thread and may take its time."""

    name: str
    parts: tuple[str, ...]  # what must be installed, see racetrack/install
    after: tuple[str, ...]  # services that must be ready before `launch` is called
    ready_within_s: float

    def ports(self, settings: Settings) -> Mapping[str, int]:
        """The TCP ports it will listen on, by the name of the setting that moves each."""

    def launch(self, context: Context) -> Launch:
        """Write configuration and data into `context.work`, keeping what data is there already; say
        what to start."""

    def check(self, context: Context) -> None:
        """Return when the service answers as its users need it; may do the last step of
        bringing it up (such as registering a connector), idempotently.

        Raises:
            NotReady: not yet; asked again until `ready_within_s` is over.
        """

    def versions(self, context: Context) -> Mapping[str, str]:
        """Part → version, for what this service runs."""


def find_service(name: str) -> NativeService:
    """The service of that name: the `SERVICE` of the module of the same name, in
    `racetrack/stack/services/` or an engine's `services/`."""
    module = plugins.service_module(name) or importlib.import_module(f"{SERVICES}.{name}")
    service: NativeService = module.SERVICE
    return service
