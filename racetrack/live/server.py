"""HTTP server of a live session: the page, server-sent events, and actions.

Reading needs no token, because the server listens on the loopback interface. Actions need one, so
that no other page in the same browser can change the session.
"""

import asyncio
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from racetrack.config import REPO
from racetrack.errors import BusyError
from racetrack.live import metrics
from racetrack.live.contract import LiveSession, Refused, parse_action

PAGE = REPO / "racetrack" / "live" / "page"
UPLOT = REPO / "racetrack" / "report" / "page" / "uplot"
SAMPLE_EVERY_S, STATE_EVERY_S, SILENT_AT_MOST_S = 0.1, 1.0, 5.0
BODY_BYTES = 4096
# A page that has not read this many messages is dropped; it connects again.
WAITING_MESSAGES = 100
RECORDED_WITHIN_S = 30.0
TOKEN_HEADER = "X-Racetrack-Token"  # noqa: S105  # a name, not a token
HEADERS = (
    (b"content-security-policy", b"default-src 'self'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Hub:
    """Sends the session's messages to all pages. It measures only while a page is open."""

    def __init__(self, session: LiveSession, sample_every_s: float) -> None:
        self._session, self._sample_every_s = session, sample_every_s
        self._pages: set[asyncio.Queue[str | None]] = set()
        self._pump: asyncio.Task[None] | None = None

    async def messages(self) -> AsyncIterator[str]:
        """Yield the messages for one page, as text of server-sent events."""
        mine: asyncio.Queue[str | None] = asyncio.Queue(WAITING_MESSAGES)
        hello = self._session.hello()
        self._pages.add(mine)
        if not self._pump or self._pump.done():
            newest = max((shown["number"] for shown in hello["events"]), default=0)
            self._pump = asyncio.create_task(self._send_all(newest))
        try:
            yield "retry: 1000\n\n" + event("hello", hello)
            while (message := await _next(mine)) is not None:
                yield message
            if ended := self._session.end():
                yield event("end", ended)
        finally:
            self._pages.discard(mine)

    async def _send_all(self, newest: int) -> None:
        """Measure and send until there is no page or the session has ended. Events with numbers up
        to `newest` have been sent."""
        loop = asyncio.get_running_loop()
        state, state_due_s = "", 0.0
        due_s = loop.time()
        while self._pages:
            for happened in self._session.events_after(newest):
                newest = happened["number"]
                self._send(event("event", happened))
            self._send(event("sample", self._session.sample()))
            if loop.time() >= state_due_s:
                state_due_s = loop.time() + STATE_EVERY_S
                if (now := event("state", self._session.state())) != state:
                    self._send(state := now)
            if self._session.end():
                self._send(None)
                return
            due_s = max(due_s + self._sample_every_s, loop.time())
            await asyncio.sleep(due_s - loop.time())

    def _send(self, message: str | None) -> None:
        for page in list(self._pages):
            try:
                page.put_nowait(message)
            except asyncio.QueueFull:
                self._pages.discard(page)
                while not page.empty():
                    page.get_nowait()
                page.put_nowait(None)


async def _next(page: "asyncio.Queue[str | None]") -> str | None:
    """Return the next message. If there is none for some time, return a comment, which keeps the
    connection alive."""
    try:
        return await asyncio.wait_for(page.get(), SILENT_AT_MOST_S)
    except TimeoutError:
        return ":\n\n"


def event(name: str, data: Any) -> str:
    """Format a server-sent event. JSON has no line break, so no text can begin another event."""
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'), allow_nan=False)}\n\n"


class Headers:
    """Adds security headers to every answer, and refuses requests for another host: a page could
    otherwise reach this server under a name of its own (DNS rebinding)."""

    def __init__(self, app: ASGIApp, is_mine: Callable[[str], bool]) -> None:
        self._app, self._is_mine = app, is_mine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        app: ASGIApp = self._app
        if not self._is_mine(host):
            app = error(403, f"This server does not answer as {host!r}: use the printed address.")
        await app(scope, receive, with_headers)


def error(status: int, text: str) -> JSONResponse:
    """Return an error as JSON."""
    return JSONResponse({"error": text}, status)


class Site:
    """The handlers of all URLs."""

    def __init__(self, session: LiveSession, token: str, hub: Hub) -> None:
        self._session, self._token, self._hub = session, token, hub

    @property
    def routes(self) -> Iterable[Route]:
        """URLs and their handlers."""
        return (
            Route("/", self._index, methods=["GET"]),
            Route("/page/{name}", self._page, methods=["GET"]),
            Route("/page/uplot/{name}", self._uplot, methods=["GET"]),
            Route("/events", self._events, methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/actions/{name}", self._act, methods=["POST"]),
        )

    async def _index(self, _request: Request) -> Response:
        return _file(PAGE, "index.html")

    async def _page(self, request: Request) -> Response:
        return _file(PAGE, request.path_params["name"])

    async def _uplot(self, request: Request) -> Response:
        return _file(UPLOT, request.path_params["name"])

    async def _events(self, _request: Request) -> Response:
        return StreamingResponse(self._hub.messages(), media_type="text/event-stream")

    async def _metrics(self, request: Request) -> Response:
        accept = request.headers.get("accept", "")
        text, media_type = metrics.exposition(self._session.latest(), self._session.state(), accept)
        return Response(text, media_type=media_type)

    async def _act(self, request: Request) -> Response:
        try:
            self._require_allowed(request)
            action = parse_action(request.path_params["name"], await _body(request))
            done = asyncio.wrap_future(self._session.act(action))
            await asyncio.wait_for(done, RECORDED_WITHIN_S)
        except Refused as refused:
            return error(refused.status, refused.text)
        except TimeoutError:
            return error(503, "The session did not carry it out in time; see the terminal.")
        return JSONResponse({"ok": True})

    def _require_allowed(self, request: Request) -> None:
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{request.headers.get('host')}":
            raise Refused(403, f"A page of {origin} must not change this session.")
        given = request.headers.get(TOKEN_HEADER, "")
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            raise Refused(
                403, "The token is missing or wrong. Open the address that the terminal printed."
            )
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise Refused(415, "The body must be application/json.")


def _file(folder: Path, name: str) -> Response:
    """Return a file of a folder; only files directly in it, and no Python."""
    path = folder / name
    if path.parent != folder or path.suffix == ".py" or not path.is_file():
        return error(404, "There is no such file.")
    return FileResponse(path)


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body.

    Raises:
        Refused: the body is too long, or is not a JSON object.
    """
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > BODY_BYTES:
            raise Refused(413, f"The body has more than {BODY_BYTES} bytes.")
    try:
        body = json.loads(content or b"{}")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Refused(400, "The body must be a JSON object.")
    return body


async def _http_error(_request: Request, failed: Exception) -> Response:
    status = failed.status_code if isinstance(failed, HTTPException) else 500
    texts = {404: "There is nothing at this address.", 405: "Actions are done by POST."}
    return error(status, texts.get(status, "This failed."))


def app(
    session: LiveSession, token: str, is_mine: Callable[[str], bool], sample_every_s: float
) -> Starlette:
    """Return the web application of a session. `is_mine` decides whether a Host header names this
    server."""
    return Starlette(
        routes=list(Site(session, token, Hub(session, sample_every_s)).routes),
        middleware=[Middleware(Headers, is_mine=is_mine)],
        exception_handlers={HTTPException: _http_error},
    )


def hosts(host: str, port: int) -> Callable[[str], bool]:
    """Return whether a Host header names a server at `host` and `port`. If the server listens on
    all interfaces, accept any name."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104  # compared, not bound
        return lambda _name: True
    names = {f"{name}:{port}" for name in (*LOOPBACK, host)}
    return lambda name: name in names


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises:
        BusyError: the port or the address can't be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as failed:
        listener.close()
        raise BusyError(
            f"The page can't listen on {host}:{port}: {failed.strerror}. Choose another port with"
            " --port."
        ) from failed
    listener.listen()
    return listener


class Server:
    """The web server, in a thread of its own."""

    def __init__(
        self,
        session: LiveSession,
        token: str,
        listener: socket.socket,
        sample_every_s: float = SAMPLE_EVERY_S,
    ) -> None:
        host, port = listener.getsockname()[:2]
        self._listener = listener
        config = uvicorn.Config(
            app(session, token, hosts(host, port), sample_every_s),
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, daemon=True
        )
        shown = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/#token={token}"

    def start(self) -> None:
        """Start to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Close all connections after their last message."""
        self._server.should_exit = True
        if self._thread.ident:
            self._thread.join()
        self._listener.close()
