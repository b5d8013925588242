"""Fixtures: parts that look installed, programs that only fail, and ports without listeners."""

import contextlib
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from racetrack import config as racetrack_settings
from racetrack.config import Settings
from racetrack.machine_lock import private_folder
from racetrack.stack import net, processes
from racetrack.stack.service import Context
from tests.service_facts import FACTS

FILES = {part: files for facts in FACTS for part, files in facts.files.items()}
FAILS = "#!/bin/sh\nexit 1\n"
PORTS = tuple(name for name in racetrack_settings.every_setting() if name.endswith("_port"))


@pytest.fixture
def settings() -> Settings:
    """Return the repository's settings, with ports where nothing listens."""
    return net.elsewhere(racetrack_settings.load(), *PORTS)


@pytest.fixture
def stack_name() -> Iterator[str]:
    """Return a name of a stack that nobody else has; end its processes at the end."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    yield name
    processes.clear(name, 0.1)
    (private_folder() / f"watchdog-{name}").unlink(missing_ok=True)


@pytest.fixture
def context(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    """Return a context in which all parts have the files that services look at before they
    start."""
    for part, files in FILES.items():
        for file in files:
            path = tmp_path / "parts" / part / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FAILS if path.parent.name == "bin" else "9.9\n")
            path.chmod(0o700)
    java = tmp_path / "jdk/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text(FAILS)
    java.chmod(0o755)
    (tmp_path / "jdk/release").write_text('IMPLEMENTOR="Nobody"\nJAVA_VERSION="17.0.99"\n')
    monkeypatch.setenv("PATH", f"{java.parent}:/usr/bin:/bin")
    work = tmp_path / "work"
    work.mkdir(mode=0o700)
    return Context(settings, work, {part: tmp_path / "parts" / part for part in FILES})


Answer = Callable[[int, bytes], None]


@pytest.fixture
def answer() -> Iterator[Answer]:
    """Return `answer(port, message)`, which listens there and sends the message to every client: at
    once or, if it is an HTTP answer, after a request."""
    with contextlib.ExitStack() as servers:

        def serve(port: int, message: bytes) -> None:
            server = servers.enter_context(socket.create_server(("127.0.0.1", port)))

            def run() -> None:
                with contextlib.suppress(OSError):  # closed at the end of the test
                    while True:
                        caller, _ = server.accept()
                        with caller:
                            if message.startswith(b"HTTP") and not caller.recv(65536):
                                continue
                            caller.sendall(message)

            threading.Thread(target=run, daemon=True).start()

        yield serve


def http(body: bytes, status: str = "200 OK") -> bytes:
    """Return an HTTP answer with this body."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
