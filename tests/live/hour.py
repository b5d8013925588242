"""An hour of a session in half a minute, served by the real server: `python -m tests.live.hour`.

It prints the address of the page, and ends when standard input is closed. Ten updates per second of
session time are sent as fast as a page reads them.
"""

import sys
from typing import Any

from racetrack.clock import now_ms
from racetrack.live.server import Server, listen
from tests.live_fakes import FakeSession

PER_S, HOUR_S = 10, 3600
SAMPLES = PER_S * HOUR_S
# High lags, each in a single update, at these seconds of the session.
PEAKS_MS = {601.3: 91_000.0, 1_802.7: 92_000.0, 3_003.1: 93_000.0}
EVENT_EVERY_S = 10
SEND_EVERY_S = 0.001


class HourSession(FakeSession):
    """A session whose clock advances by a tenth of a second with each sample, up to an hour."""

    def __init__(self) -> None:
        self._from_ms = now_ms() - 1000 * HOUR_S
        super().__init__()

    def clock_ms(self) -> int:
        return self._from_ms + 1000 * self.samples // PER_S

    def sample(self) -> dict[str, Any]:
        if self.samples == SAMPLES:
            return {"at_ms": self.clock_ms(), "values": self.latest()}
        if self.samples % (PER_S * EVENT_EVERY_S) == 0:
            self.tell("note", f"a note at {self.samples // PER_S} s")
        return super().sample()

    def _values(self, at_ms: int) -> dict[str, float | None]:
        at_s = self.samples / PER_S
        peak = {"lag_ms/dh/count": PEAKS_MS[at_s]} if at_s in PEAKS_MS else {}
        return {**super()._values(at_ms), **peak}


if __name__ == "__main__":
    server = Server(HourSession(), "token", listen("127.0.0.1", 0), SEND_EVERY_S)
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()
