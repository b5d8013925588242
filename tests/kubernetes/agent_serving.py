"""Serves samples of an agent in a thread of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kubernetes.agent_nodes import agent

PROGRAM = agent()


@contextmanager
def served(sampler: Any, port: int = 0) -> Iterator[int]:
    """Serve at this port of all addresses, or a free one; provide the port."""
    with PROGRAM.serve(sampler, port) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
