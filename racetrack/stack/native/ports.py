"""Tells, before anything starts, which process holds a port that a service needs."""

import errno
import socket
from collections.abc import Iterable, Mapping

import psutil

from racetrack.errors import BusyError


def must_be_free(address: str, wanted: Iterable[Mapping[str, int]]) -> None:
    """Check ports given as setting name → TCP port.

    Raises:
        BusyError: one is taken, or two settings ask for the same; names the setting that moves it.
    """
    seen: dict[int, str] = {}
    for setting, port in ((s, p) for group in wanted for s, p in group.items()):
        if port in seen:
            raise BusyError(f"{setting} and {seen[port]} are both {port}. Change one of them.")
        seen[port] = setting
        if _is_taken(address, port):
            raise BusyError(
                f"Port {port} is taken by {holder(port)}. Stop it, or set {setting} to a free port."
            )


def holder(port: int) -> str:
    """Who listens on a TCP port of this machine, as far as this user may know."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port:
                if connection.pid is None:
                    break
                return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        pass  # the answer below says that it could not be seen
    return "a process that this user can't see"


def _is_taken(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise BusyError(
                f"Can't listen on {address}:{port}: {error.strerror}. Check BIND_ADDRESS."
            ) from None
    return False
