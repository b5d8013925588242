"""A server that speaks to the live page as a session does, for what no real session does on demand:
it disappears, returns, refuses actions, and sends odd texts and years of figures."""

import json
import math
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from racetrack.config import REPO
from tests.fake_server import serve_in_background

TOKEN = "secret"
CONTENT_SECURITY_POLICY = "default-src 'self'"
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
PAGE = REPO / "racetrack" / "live" / "page"
UPLOT = REPO / "racetrack" / "report" / "page" / "uplot"
FOLDERS = {"": PAGE, "/page": PAGE, "/page/uplot": UPLOT}
ENGINES = {"dh": "Deephaven", "pg": "PostgreSQL"}
SERVICES = {
    "deephaven": "dh",
    "postgres": "pg",
    "broker": None,
    "mysql": None,
    "debezium": None,
    "registry": None,
    "loadgen": None,
}
VIEWS = ("count", "item_summary", "profile_views_enriched", "purchases_by_item")


def series() -> list[dict[str, Any]]:
    """Return the definition of every line."""

    def one(series_id: str, label: str, unit: str, group: str, engine: str | None = None) -> Any:
        return {"id": series_id, "label": label, "unit": unit, "group": group, "engine": engine}

    return [
        one("offered_per_s", "offered", "1/s", "rate"),
        one("published_per_s", "published", "1/s", "rate"),
        *(one(f"counted_per_s/{of}", ENGINES[of], "1/s", "rate", of) for of in ENGINES),
        *(
            one(f"lag_ms/{of}/{view}", f"{ENGINES[of]} {view}", "ms", "lag", of)
            for of in ENGINES
            for view in VIEWS
        ),
        *(one(f"backlog/{of}", ENGINES[of], "events", "backlog", of) for of in ENGINES),
        *(one(f"cpu_pct/{name}", name, "%", "cpu", of) for name, of in SERVICES.items()),
        *(one(f"rss_gib/{name}", name, "GiB", "memory", of) for name, of in SERVICES.items()),
        one("steal_pct", "steal", "%", "noise"),
        one("foreign_cpu_pct", "other programs", "%", "noise"),
        one("browser_cpu_pct", "browsers", "%", "noise"),
        one("harness_cpu_pct", "harness", "%", "noise"),
    ]


def figures(at_s: float, per_s: float) -> dict[str, float]:
    """Return values of all lines: two engines that update once a second."""
    wave = math.sin(at_s / 7)
    values: dict[str, float] = {"offered_per_s": per_s, "published_per_s": per_s * (1 + wave / 200)}
    for number, of in enumerate(ENGINES):
        values[f"counted_per_s/{of}"] = per_s * (0.98 - 0.1 * number + wave / 50)
        values[f"backlog/{of}"] = per_s * (0.2 + number)
        for place, view in enumerate(VIEWS):
            values[f"lag_ms/{of}/{view}"] = (
                100 * (1 + 8 * number) + 250 * place + 1000 * (at_s % 1) * (1 + number)
            ) * (1 + wave / 10)
    for number, name in enumerate(SERVICES):
        values[f"cpu_pct/{name}"] = 70 / (1 + number) + 4 * wave
        values[f"rss_gib/{name}"] = (1.6 + wave / 20) / (1 + number)
    return values | {
        "steal_pct": 0.2 + wave / 10,
        "foreign_cpu_pct": 1.5 + wave,
        "browser_cpu_pct": 22 + 3 * wave,
        "harness_cpu_pct": 9 + wave,
    }


def state_of(per_s: int, now_ms: int, segment: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a `state` in which all is well."""
    targets = ("dh", "pg", "broker", "mysql", "debezium", "registry")
    controls = dict.fromkeys(("rate", "load", "purchases", "reads", "note", "end"), "")
    for target in targets:
        controls |= {
            f"pause/{target}": "",
            f"resume/{target}": f"{target} is not paused",
            f"kill/{target}": "",
            f"restart/{target}": f"{target} is running",
        }
    controls |= {"kill/registry": "registry keeps its data in memory only"}
    controls |= {"updates": "the workload ads has no updates"}
    return {
        "now_ms": now_ms,
        "elapsed_s": 0.0,
        "phase": "running",
        "rates": {"pageviews": per_s, "purchases": 10, "updates": 0, "reads": 2},
        "load": None,
        "load_stopped": "",
        "segment": segment,
        "in_the_way": {"what": "nothing", "text": "Nothing: both engines keep up."},
        "engines": [
            {
                "name": of,
                "status": "running",
                "text": "",
                "verdict": {
                    "kind": "kept up" if of == "dh" else "undecided",
                    "text": "Kept up: lag is steady (grows by -0.1 % ± 0.3 % of real time; limit"
                    " 1 %), judged over 20 s"
                    if of == "dh"
                    else "Undecided: too early; the first look is 10 s after the rate was set",
                    "judged_s": 20.0,
                },
            }
            for of in ENGINES
        ],
        "services": [{"name": name, "status": "running"} for name in SERVICES],
        "memory": [
            {"what": "broker", "left_s": 1900.0, "warn": False, "text": "Broker: 0.8 of 4.0 GiB"},
            {
                "what": "heap of deephaven",
                "left_s": 240.0,
                "warn": True,
                "text": "Heap of deephaven: 3.1 of 4.0 GiB, lasts 4 min at this rate",
            },
        ],
        "controls": controls,
    } | changes


class PageServer:
    """A fake session behind HTTP on one port, from `start` to `stop`, again and again."""

    def __init__(self) -> None:
        self.port = 0
        self.started_ms = int(time.time() * 1000) - 90_000
        self.per_s = 5000
        self.events: list[dict[str, Any]] = []
        self.actions: list[tuple[str, Any]] = []
        self.tokens: list[str | None] = []
        self.refusals: dict[str, tuple[int, str]] = {}
        self.changes: dict[str, Any] = {}
        self.history: dict[str, Any] = {"at_ms": [], "values": {}}
        self.segment = {"number": 1, "from_ms": self.started_ms, "why": "start"}
        self._server: ThreadingHTTPServer | None = None
        self._listeners: list[queue.SimpleQueue[bytes | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/#token={TOKEN}"

    def start(self) -> None:
        """Serve, on the same port as before."""
        owner = self

        class Handler(_Handler):
            session = owner

        ThreadingHTTPServer.daemon_threads = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        serve_in_background(self._server)

    def stop(self) -> None:
        """Close the port and all connections."""
        assert self._server
        self._server.shutdown()
        self._server.server_close()
        for listener in self._listeners:
            listener.put(None)
        self._listeners.clear()

    def send(self, name: str, message: Any) -> None:
        """Send a message to all pages."""
        for listener in list(self._listeners):
            listener.put(_message(name, message))

    def sample(self, values: dict[str, Any] | None = None, at_ms: int | None = None) -> None:
        """Send a row of figures."""
        at_ms = at_ms or int(time.time() * 1000)
        values = values or figures((at_ms - self.started_ms) / 1000, self.per_s)
        self.send("sample", {"at_ms": at_ms, "values": values})

    def state(self, **changes: Any) -> None:
        """Send the state with these changes, which stay."""
        self.changes |= changes
        self.send("state", self.current_state())

    def event(self, kind: str, text: str, **more: Any) -> None:
        """Send an event, which stays."""
        at_ms = int(time.time() * 1000)
        number = len(self.events) + 1
        event = {"number": number, "at_ms": at_ms, "kind": kind, "target": "", "text": text}
        self.events.append(event | {"segment": 1, "by": "user"} | more)
        self.send("event", self.events[-1])

    def current_state(self) -> dict[str, Any]:
        return state_of(self.per_s, int(time.time() * 1000), self.segment, **self.changes)

    def fill(self, seconds: float, every_s: float = 0.1) -> None:
        """Make up a history that ends now."""
        now_ms = int(time.time() * 1000)
        self.started_ms = now_ms - int(seconds * 1000)
        at_ms = [
            self.started_ms + int(1000 * every_s * row) for row in range(int(seconds / every_s))
        ]
        rows = [figures((at - self.started_ms) / 1000, self.per_s) for at in at_ms]
        values = {key: [row[key] for row in rows] for key in rows[0]}
        self.history = {"at_ms": at_ms, "values": values}

    def listen(self) -> "queue.SimpleQueue[bytes | None]":
        """Return a queue with `hello`, and what is sent later."""
        listener: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        listener.put(b"retry: 300\n\n" + _message("hello", self._hello()))
        self._listeners.append(listener)
        return listener

    def act(self, name: str, body: Any, token: str | None) -> tuple[int, dict[str, Any]]:
        """Carry out an action; return the status and the answer."""
        self.actions.append((name, body))
        self.tokens.append(token)
        if name in self.refusals:
            status, error = self.refusals[name]
            return status, {"error": error}
        if name == "rate":
            per_s = str(body["per_s"])
            before, self.per_s = (
                self.per_s,
                int(float(per_s.rstrip("k")) * (1000 if "k" in per_s else 1)),
            )
            self.event("rate", f"rate {before:,}/s → {self.per_s:,}/s")
            self.state()
        elif name == "note":
            self.event("note", body["text"])
        elif name in ("kill", "pause", "resume", "restart"):
            self.event(name, f"{name} {body['target']}", target=body["target"])
        elif name == "end":
            self.send("end", {"text": "Ended by the user.", "folder": "logs/one"})
        return 200, {"ok": True}

    def _hello(self) -> dict[str, Any]:
        return {
            "session": f"{self.started_ms}_dh+pg_live",
            "now_ms": int(time.time() * 1000),
            "started_ms": self.started_ms,
            "folder": "logs/2026.11.26.07.30.00_UTC_dh+pg_live",
            "runtime": "native",
            "workload": "shop",
            "machine": "Xeon, 2 cores, 8 GiB",
            "cores": 2,
            "engines": [
                {
                    "name": of,
                    "title": title,
                    "services": [name for name, engine in SERVICES.items() if engine == of],
                }
                for of, title in ENGINES.items()
            ],
            "services": [{"name": name, "engine": of} for name, of in SERVICES.items()],
            "series": series(),
            "kinds": [
                {"name": "purchases", "per_s": 10, "most_per_s": 10_000},
                {"name": "updates", "per_s": 0, "most_per_s": 10_000},
                {"name": "reads", "per_s": 2, "most_per_s": 1000},
            ],
            "profiles": [
                {"name": "ramp", "form": "FROM TO DURATION", "example": "ramp 1k 50k 60s"},
                {"name": "spike", "form": "BASE PEAK DURATION", "example": "spike 5k 50k 10s"},
            ],
            "history": self.history,
            "events": self.events,
            "state": self.current_state(),
        }


class _Handler(BaseHTTPRequestHandler):
    session: PageServer

    def do_GET(self) -> None:
        if self.path == "/events":
            self._follow()
            return
        folder, _, name = self.path.rpartition("/")
        found = FOLDERS.get(folder, Path("/")) / (name or "index.html")
        if not found.is_file():
            self._answer(404, b'{"error": "not found"}', "application/json")
            return
        self._answer(200, found.read_bytes(), TYPES[found.suffix])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        token = self.headers.get("X-Racetrack-Token")
        name = self.path.removeprefix("/actions/")
        status, answer = self.session.act(name, body, token)
        self._answer(status, json.dumps(answer).encode(), "application/json")

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _follow(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        listener = self.session.listen()
        while (message := listener.get()) is not None:
            try:
                self.wfile.write(message)
                self.wfile.flush()
            except OSError:
                return
        self.close_connection = True

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)


def _message(name: str, message: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(message)}\n\n".encode()


@contextmanager
def running(server: PageServer) -> Iterator[None]:
    """Send figures ten times a second, and CPU and memory with them."""
    ended = threading.Event()

    def send() -> None:
        while not ended.wait(0.1):
            server.sample()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        yield
    finally:
        ended.set()
        sender.join()
