"""A worker's end of the socket to the control process: orders in, answers out, in packets of JSON.
Nothing here waits: a control process that hangs must not hold up what is due.
"""

from __future__ import annotations

import json
import socket
from collections import deque
from typing import Any

MAX_WAITING_LINES = 100
PACKET_BYTES = 1 << 18


class ControlLink:
    """Takes orders; keeps what it is to tell until the socket takes it."""

    def __init__(self, control: socket.socket) -> None:
        control.setblocking(False)
        self._control = control
        self._outbox: deque[bytes] = deque()

    def order(self) -> dict[str, Any] | None:
        """The next order, None if there is none now.

        Raises:
            ConnectionError: the control process is gone.
        """
        try:
            packet = self._control.recv(PACKET_BYTES)
        except BlockingIOError:
            return None
        if not packet:
            raise ConnectionError("the control process has closed its end")
        order: dict[str, Any] = json.loads(packet)
        return order

    def log(self, text: str) -> None:
        """A line for the generator's log; dropped when the control process hangs."""
        if len(self._outbox) < MAX_WAITING_LINES:
            self.say(say="log", text=text)

    def say(self, **message: Any) -> None:
        """Tell the control process, now or when its socket takes it."""
        self._outbox.append(json.dumps(message).encode())
        self.send()

    def send(self) -> None:
        """Try again to send what waits."""
        try:
            while self._outbox:
                self._control.send(self._outbox[0])
                self._outbox.popleft()
        except BlockingIOError:
            return  # tried again at every settling
        except ConnectionError:
            self._outbox.clear()  # it is gone; the next look for orders ends this worker
