"""Servers that tests make up, in a thread of their own."""

import socketserver
import threading

# The default of half a second is how long each `shutdown` would wait.
LOOK_EVERY_S = 0.01


def serve_in_background(server: socketserver.BaseServer) -> None:
    """Let it answer until its `shutdown` is called."""
    threading.Thread(target=server.serve_forever, args=(LOOK_EVERY_S,), daemon=True).start()
