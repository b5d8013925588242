"""A real Redis for tests: the stack's service, on a free port."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from racetrack import install
from racetrack.config import load
from racetrack.stack import net
from racetrack.stack.native.startup import RunningService, wait_ready
from racetrack.stack.service import Context, find_service, spawn


@dataclass(frozen=True)
class Server:
    """A running Redis."""

    port: int
    client: "redis.Redis"
    process: "subprocess.Popen[bytes]"

    @property
    def endpoint(self) -> str:
        """Host and port, as `host:port`."""
        return f"127.0.0.1:{self.port}"


@contextmanager
def running_redis(work: Path) -> Iterator[Server]:
    """Start Redis; stop it at the end."""
    settings = net.elsewhere(load(), "redis_port")
    parts = install.ensure(["redis"], install.read_versions(), print)
    context = Context(settings, work, parts)
    service = find_service("redis")
    log = work / "redis.log"
    with log.open("wb") as output:
        process = spawn(service.launch(context), output, {})
    try:
        wait_ready(RunningService(service, process, log), context, lambda: None)
        with redis.Redis(port=settings.redis_port, decode_responses=True) as client:
            yield Server(settings.redis_port, client, process)
    finally:
        process.kill()
        process.wait()
