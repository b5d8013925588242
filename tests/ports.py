"""Free ports for servers of tests. The kernel would give a port of its own range, but once it is
closed, an outgoing connection of any program may take it before the server does."""

import contextlib
import itertools
import os
import socket

from tests.e2e.side_by_side import worker_number

# Lower than the ports that the kernel gives to outgoing connections.
PORTS_FROM, PORTS_EACH = 26000, 500  # for each worker of xdist
_OFFSETS = itertools.cycle(range(PORTS_EACH))


def free_ports(count: int) -> list[int]:
    """Return free ports. The next call goes on behind them, because they may be used later."""
    free: list[int] = []
    first = PORTS_FROM + worker_number() * PORTS_EACH
    # Another process of this worker, or other tests on this machine, would begin at the same port.
    for offset in itertools.islice(_OFFSETS, PORTS_EACH):
        port = first + (os.getpid() + offset) % PORTS_EACH
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            free.append(port)
        if len(free) == count:
            return free
    raise AssertionError(f"no {count} free ports from {first} on")
