"""Start of native services: waits until a service is ready, and reports failures."""

import contextlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from racetrack.cgroups import MemoryKills, how_killed
from racetrack.stack.service import Context, NativeService, NotReady, wait_until_ready
from racetrack.stack.supervisor import ServiceError, with_log

COMPLETE_CHECK_EVERY_S = 1.0


@dataclass
class RunningService:
    """A service that was started, and its main process."""

    service: NativeService
    process: "subprocess.Popen[bytes]"
    log: Path
    was_killed: bool = False  # set by `NativeStack.kill_units`

    def __post_init__(self) -> None:
        self._memory = MemoryKills(self.process.pid)

    @property
    def has_ended(self) -> bool:
        """True if the main process has exited."""
        return self.process.poll() is not None

    def ending(self) -> str:
        """Return the exit code or signal of the main process, whether memory ran out, and the end
        of the log."""
        return with_log(how_killed(self.process.poll() or 0, self._memory.describe()), self.log)


def wait_ready(
    running: RunningService,
    context: Context,
    before_check: Callable[[], None],
    is_complete: Callable[[], bool] = lambda: True,
) -> None:
    """Wait until the service has passed its check.

    `before_check` is called before each check, and may raise an exception to end the wait. The time
    limit begins when `is_complete` returns True: other components may still be downloading.

    Raises:
        ServiceError: the service ended, or was not ready in time.
    """
    service = running.service

    def check_process() -> None:
        before_check()
        if running.has_ended:
            raise ServiceError(f"{service.name} did not start: {running.ending()}")

    while not is_complete():
        with contextlib.suppress(NotReady):
            return wait_until_ready(service, context, COMPLETE_CHECK_EVERY_S, check_process)
    try:
        wait_until_ready(service, context, service.ready_within_s, check_process)
    except NotReady as why:
        late = f"{service.name} was not ready within {service.ready_within_s:.0f} s: {why}"
        raise ServiceError(with_log(late, running.log)) from None
