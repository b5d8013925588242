"""Samples of the agent (the program that measures the pods on a node), served by a thread of the
test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kubernetes.agent_nodes import agent

PROGRAM = agent()


@contextmanager
def served(sampler: Any, port: int = 0) -> Iterator[int]:
    """Serve the agent's samples at this port, or at a free one, on all addresses; yield the
    port."""
    with PROGRAM.serve(sampler, port) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
