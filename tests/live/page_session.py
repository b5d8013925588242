"""A fake session behind the real server, for what no real session does on demand: its server
disappears and returns, and it sends odd figures and texts."""

from typing import Any

from racetrack.clock import now_ms
from racetrack.live.server import Server, listen
from tests.live_fakes import FakeSession
from tests.ports import free_ports

TOKEN = "secret"
EVERY_MS = 100


class PageSession(FakeSession):
    """A session that has run for some time. `changes`, `forbidden` and `odd` replace parts of its
    state, controls and figures."""

    def __init__(self, ran_s: int) -> None:
        super().__init__()
        self.changes: dict[str, Any] = {}
        self.forbidden: dict[str, str] = {}
        self.odd: dict[str, float | None] = {}
        (self._port,) = free_ports(1)  # it stays free while the server is down
        self._began_ms = now_ms() - 1000 * ran_s
        for at_ms in range(self._began_ms, now_ms(), EVERY_MS):
            self._history.add(at_ms, self._values(at_ms))
        self.start()

    def start(self) -> None:
        """Start to serve, on the same port as before."""
        listener = listen("127.0.0.1", self._port)
        self._server = Server(self, TOKEN, listener)
        self.url = self._server.url
        self._server.start()

    def stop(self) -> None:
        """Close the port and all connections."""
        self._server.stop()

    @property
    def actions(self) -> list[tuple[str, Any]]:
        return [(action.name, action.arguments) for action in self.acted]

    def state(self) -> dict[str, Any]:
        state = super().state()
        return {**state, "controls": {**state["controls"], **self.forbidden}, **self.changes}

    def sample(self) -> dict[str, Any]:
        sample = super().sample()
        return {**sample, "values": {**sample["values"], **self.odd}}
