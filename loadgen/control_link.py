"""A worker's end of the socket to the generator's main process: receives orders and sends reports,
both JSON packets. It never blocks, so a main process that hangs does not delay the load."""

from __future__ import annotations

import json
import socket
from collections import deque
from typing import Any

MAX_WAITING_LINES = 100
PACKET_BYTES = 1 << 18


class ControlLink:
    """Receives orders, and buffers reports until the socket accepts them."""

    def __init__(self, control: socket.socket) -> None:
        control.setblocking(False)
        self._control = control
        self._outbox: deque[bytes] = deque()

    def fileno(self) -> int:
        """Return the socket's descriptor, for a selector."""
        return self._control.fileno()

    def order(self) -> dict[str, Any] | None:
        """Return the next order, or None if there is none now.

        Raises:
            ConnectionError: the main process has ended.
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
        """Write a line to the generator's log; drop the line while the main process hangs."""
        if len(self._outbox) < MAX_WAITING_LINES:
            self.report(event="log", text=text)

    def report(self, **message: Any) -> None:
        """Send a report immediately, or as soon as the socket accepts it."""
        self._outbox.append(json.dumps(message).encode())
        self.send()

    def send(self) -> None:
        """Send buffered reports as far as possible."""
        try:
            while self._outbox:
                self._control.send(self._outbox[0])
                self._outbox.popleft()
        except BlockingIOError:
            return  # tried again in every iteration
        except ConnectionError:
            self._outbox.clear()  # main process ended: the next call of `order` ends this worker
