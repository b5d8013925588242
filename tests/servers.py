"""Programs that tests run beside themselves, such as real servers."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from racetrack.stack.service import NotReady
from tests.waiting import wait_until

LOG = "log"


@contextmanager
def running(
    commands: Iterable[Sequence[str | Path]],
    folder: Path,
    is_ready: Callable[[], object],
    within_s: float = 60.0,
    environment: Mapping[str, str] | None = None,
    not_ready: type[Exception] = NotReady,
) -> Iterator[list[int]]:
    """Start programs in a folder; stop them and their children at the end. Yield their process ids
    once `is_ready` returns a true value; before that it may raise `not_ready`. Their output is in
    the file LOG."""

    def answers() -> bool:
        with suppress(not_ready):
            return bool(is_ready())
        return False

    with ExitStack() as ending, (folder / LOG).open("ab") as log:
        pids = []
        for command in commands:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
            ending.callback(_end, process)
            pids.append(process.pid)
        wait_until(answers, f"server in {folder}, whose {LOG} says why,", within_s, 0.1)
        yield pids


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
    process.kill()
    process.wait()


def print_settings(settings: Mapping[str, str]) -> None:
    """Print the settings of a run that uses a server, and wait until standard input ends."""
    for setting, value in settings.items():
        print(f"export {setting}='{value}'", flush=True)
    sys.stdin.read()
