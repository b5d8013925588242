"""Service that runs a Python module of this project, with the harness's own Python."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from racetrack.config import REPO, Settings
from racetrack.stack import net
from racetrack.stack.service import Context, Launch, NotReady

READY_FILE = "ready"


@dataclass(frozen=True)
class PythonProgram:
    """See `racetrack.stack.service.NativeService`. The module must take its settings from
    environment variables, and create the file READY_FILE once it is ready."""

    name: str
    module: str
    after: tuple[str, ...]
    environment: Callable[[Settings], Mapping[str, str]]
    not_ready: str  # text on what is missing until the module is ready
    libraries: tuple[str, ...]  # packages whose versions are reported
    parts: tuple[str, ...] = ()
    ready_within_s: float = 30.0

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        ready = context.work / READY_FILE
        ready.unlink(missing_ok=True)  # a killed program leaves the file behind
        return Launch(
            argv=[sys.executable, "-m", self.module],
            env={
                **self.environment(context.settings),
                **net.kafka(context.settings).environment(),
                "READY_FILE": str(ready),
                "PYTHONPATH": str(REPO),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """Raise NotReady until the module has created the file."""
        if not (context.work / READY_FILE).exists():
            raise NotReady(self.not_ready)

    def versions(self, _context: Context) -> Mapping[str, str]:
        return {name: version(name) for name in self.libraries}
