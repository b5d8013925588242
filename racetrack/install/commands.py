"""Runs uv, pip, Maven and apt for one part: logs output, retries failures, and can be stopped."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from racetrack import environment
from racetrack.errors import SetupError
from racetrack.install import maven_user

Say = Callable[[str], None]
BACKOFF_S = (2.0, 8.0)
# Output of failures that a retry would not solve: a wrong hash, or an unknown package.
FINAL = (
    "DO NOT MATCH THE HASHES",  # pip
    "No matching distribution",
    "Hash mismatch",  # uv
    "No solution found",
    "EINTEGRITY",  # npm
    "can only install packages when your package.json",  # the lock file is of another one
    "Unable to locate",  # apt
    "is expired",
)


class Stopped(Exception):
    """The set-up was interrupted."""


class Children:
    """Processes started by a set-up; an interruption ends all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self.stopped = threading.Event()

    def start(self, argv: Sequence[str], **options: object) -> subprocess.Popen[str]:
        """Start a process in its own process group, so that `stop` also ends its children.

        Raises:
            Stopped: `stop` was called.
        """
        with self._lock:
            if self.stopped.is_set():
                raise Stopped
            child: subprocess.Popen[str] = subprocess.Popen(  # type: ignore[call-overload]
                argv, text=True, process_group=0, **options
            )
            self._running.add(child)
            return child

    def ended(self, child: subprocess.Popen[str]) -> None:
        """Remove a process that has ended."""
        with self._lock:
            self._running.discard(child)

    def stop(self) -> None:
        """End all running processes; no more can be started."""
        with self._lock:
            self.stopped.set()
            for child in self._running:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGTERM)


class Runner:
    """Runs programs for one part; their output goes to `log`, temporary files to `scratch`.

    Programs inherit `keep_open`, the file descriptor of the set-up lock. A program that outlives a
    killed set-up therefore holds the lock, so no other set-up writes to the same folder.
    """

    def __init__(
        self,
        part: str,
        *,
        log: Path,
        scratch: Path,
        say: Say,
        children: Children,
        keep_open: Sequence[int] = (),
        backoff_s: Sequence[float] = BACKOFF_S,
    ) -> None:
        self._part, self._log, self._scratch, self._say = part, log, scratch, say
        self._children, self._keep_open = children, keep_open
        self._backoff_s = backoff_s

    def __call__(
        self,
        *argv: str | Path,
        doing: str,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> str:
        """Run a program to its end and return its standard output.

        `doing` describes the program's task in messages. `env` is added to the environment; a value
        of None removes a variable.

        Raises:
            SetupError: all attempts failed; the message contains the last lines of the output.
            Stopped: the set-up was interrupted.
        """
        for backoff_s in (*self._backoff_s, None):
            code, out, err = self._once([str(arg) for arg in argv], cwd, env or {})
            if code == 0:
                return out
            if self._children.stopped.is_set():
                raise Stopped
            if backoff_s is None or any(word in out + err for word in FINAL):
                break
            self._say(
                f"{self._part}: {doing} failed ({_last_line(out + err)}); again in {backoff_s:g} s"
            )
            if self._children.stopped.wait(backoff_s):
                raise Stopped
        raise SetupError(self._failure(argv, doing, code, out + err))

    def _once(
        self, argv: list[str], cwd: Path | None, env: Mapping[str, str | None]
    ) -> tuple[int, str, str]:
        users = environment.of_download()
        wanted = {
            **users,
            **dict.fromkeys(name for name in users if name.startswith("PYTHON")),
            **dict.fromkeys(maven_user.VARIABLES),
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self._scratch),
            # The user's virtual environment must not affect the environments made here, and Maven
            # must use the Java on PATH, which all other programs use.
            **dict.fromkeys(("VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME")),
            **env,
        }
        environ = {name: value for name, value in wanted.items() if value is not None}
        try:
            child = self._children.start(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=environ,
                pass_fds=self._keep_open,
            )
        except OSError as error:
            raise SetupError(
                f"{self._part}: {argv[0]} can't be started: {error.strerror}"
            ) from None
        try:
            out, err = child.communicate()
        finally:
            self._children.ended(child)
        with self._log.open("a") as log:
            log.write(f"$ {' '.join(argv)}\n{out}{err}exit code {child.returncode}\n")
        return child.returncode, out, err

    def _failure(self, argv: Sequence[str | Path], doing: str, code: int, output: str) -> str:
        tail = "\n".join(f"    {line}" for line in output.strip().splitlines()[-8:])
        return (
            f"{self._part}: {doing} failed: {Path(argv[0]).name} ended with exit code {code}:\n"
            f"{tail}\n  Full log: {self._log}"
        )


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else "no output"
