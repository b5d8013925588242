"""Servers that tests make up, in a thread of their own."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# The default of half a second is how long each `shutdown` would wait.
LOOK_EVERY_S = 0.01


def serve_in_background(server: socketserver.BaseServer) -> None:
    """Let it answer until its `shutdown` is called."""
    threading.Thread(target=server.serve_forever, args=(LOOK_EVERY_S,), daemon=True).start()


class JsonHandler(BaseHTTPRequestHandler):
    """Answers in JSON, and logs nothing. A server defines `get`, `post`, `put` and `delete`, as far
    as it is asked."""

    def __getattr__(self, name: str) -> Any:
        """Return the method that answers requests, for example `get` for `do_GET`."""
        if not name.startswith("do_"):
            raise AttributeError(name)
        return getattr(self, name.removeprefix("do_").lower())

    def answer(self, body: object, status: int = 200) -> None:
        """Send this body."""
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def received(self) -> Any:
        """Return the request's body."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serving(handler: type[JsonHandler]) -> Iterator[str]:
    """Let such handlers answer on a free port, at the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serve_in_background(server)
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
