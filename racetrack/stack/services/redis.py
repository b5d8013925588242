"""Redis, in memory only and without a password, for engines that write their views there."""

import socket
from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.install.apt import own_loader
from racetrack.stack import net
from racetrack.stack.service import Context, Launch, NotReady

PONG = b"+PONG"


class Redis:
    """Redis as a native service."""

    name = "redis"
    parts = ("redis",)
    after = ()
    ready_within_s = 30.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"REDIS_PORT": settings.redis_port}

    def launch(self, context: Context) -> Launch:
        options = [part for pair in configuration(context).items() for part in pair]
        server = own_loader(context.parts["redis"], "usr/bin/redis-server")
        return Launch(argv=[*server, *options], cwd=context.work)

    def check(self, context: Context) -> None:
        settings = context.settings
        try:
            where = (net.host(settings), settings.redis_port)
            with socket.create_connection(where, timeout=2) as connection:
                connection.sendall(b"PING\r\n")
                heard = connection.recv(len(PONG), socket.MSG_WAITALL)
        except OSError as error:
            raise NotReady(f"port {settings.redis_port} does not answer ({error})") from None
        if heard != PONG:
            raise NotReady(f"it answered {heard!r} to PING")

    def versions(self, context: Context) -> Mapping[str, str]:
        return {"redis": (context.parts["redis"] / "VERSION").read_text().strip()}


def configuration(context: Context) -> dict[str, str]:
    """Return the options of redis-server. It writes nothing to disk."""
    return {
        "--bind": context.settings.bind_address,
        "--port": str(context.settings.redis_port),
        # BIND_ADDRESS restricts access.
        "--protected-mode": "no",
        "--save": "",
        "--appendonly": "no",
        # A process title would overwrite the mark by which a stack finds its processes.
        "--set-proc-title": "no",
    }


SERVICE = Redis()
