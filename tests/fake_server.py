"""Fake servers of tests, each in a thread of its own."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Interval at which a server checks if `shutdown` was called; `shutdown` may wait that long.
# Python's default is half a second.
LOOK_EVERY_S = 0.01


def serve_in_background(server: socketserver.BaseServer) -> None:
    """Let the server answer in a thread until its `shutdown` is called."""
    threading.Thread(target=server.serve_forever, args=(LOOK_EVERY_S,), daemon=True).start()


class JsonHandler(BaseHTTPRequestHandler):
    """A handler that answers in JSON and logs nothing. A subclass defines `get`, `post`, `put` or
    `delete`, as far as its server needs them."""

    def __getattr__(self, name: str) -> Any:
        """Return the method that answers requests, for example `get` for `do_GET`."""
        if not name.startswith("do_"):
            raise AttributeError(name)
        return getattr(self, name.removeprefix("do_").lower())

    def answer(self, body: object, status: int = 200) -> None:
        """Send this body as JSON."""
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
    """Let a server with this handler answer on a free port; yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serve_in_background(server)
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
