"""The control socket: many clients, none of which can stall the load or make it hold much memory.

Every client has a bounded line and a bounded output, and is dropped when it exceeds either.
"""

from __future__ import annotations

import errno
import re
import selectors
import socket
import time
from typing import Callable

from loadgen.commands import Commands, Load, Then
from loadgen.config import ConfigError

GREETING = "LOADGEN Connected."
MAX_LINE_BYTES = 1_000
# One client's share of a turn: what it says beyond that waits until the others had theirs.
READ_BYTES = 1_024
DISCARD_BYTES = 1 << 16
# Answers to what came together leave together, this many bytes at a time.
SEND_BYTES = 1 << 16
# About 300 lines of `watch`: half a minute of a client that does not read.
MAX_OUTPUT_BYTES = 256 * 1024
MAX_CLIENTS = 500
# After a goodbye, a client gets this long, and may say this much, until it has closed its side.
LINGER_S = 2.0
MAX_DISCARDED_BYTES = 4 * 1024 * 1024
# Any page in a browser on this machine can have it send a request here, whose body would be read as
# commands. So a line of HTTP, or the beginning of TLS where a line begins, ends the conversation.
HTTP_LINE = re.compile(rb"\S+ \S+ HTTP/\d|Host:", re.IGNORECASE)
TLS_HELLO = b"\x16\x03"
SAY_HTTP_EVERY_S = 10.0


class _Client:
    """One conversation."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.connection = connection
        self.name = name
        self.input = b""
        self.output = bytearray()
        self.watching = False
        self.awaiting = False  # an answer is to come, and nothing is read until then
        self.consuming = False
        self.deaf = False  # it has closed its side, but may still read
        self.closing = False  # a last line has been said
        self.leave_by_s = 0.0  # it is only waited for so that the last line arrives
        self.discarded_bytes = 0
        self.events = 0  # what the selector watches
        self.gone = False


class ControlServer:
    """Accepts clients and carries out what they say. Driven by a selector whose `data` are
    callbacks that take the mask of events.
    """

    def __init__(
        self,
        listener: socket.socket,
        selector: selectors.BaseSelector,
        load: Load,
        log: Callable[[str], None],
    ) -> None:
        self._listener, self._selector, self._load, self._log = listener, selector, load, log
        self._commands = Commands(load)
        self._clients: set[_Client] = set()
        self._http_said_s = float("-inf")
        self._http_unsaid = 0
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ, lambda _mask: self._accept())

    def close(self) -> None:
        """Stop listening and end every conversation."""
        self._selector.unregister(self._listener)
        self._listener.close()
        for client in list(self._clients):
            self._drop(client)

    def broadcast(self) -> None:
        """Send the statistics to those who watch, and end goodbyes that take too long. To be called
        every 100 ms.
        """
        for client in [client for client in self._clients if client.leave_by_s]:
            if time.monotonic() > client.leave_by_s:
                self._drop(client)
        watchers = [client for client in self._clients if client.watching]
        if watchers:
            line = self._load.stats_line()
            for client in watchers:
                self._send(client, line)

    def _accept(self) -> None:
        while True:
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._log("Too many open files: a client has to wait")
                    return
                if error.errno == errno.ECONNABORTED:
                    continue  # it went away before it was let in
                raise
            connection.setblocking(False)
            client = _Client(connection, f"{address[0]}:{address[1]}")
            self._clients.add(client)
            if len(self._clients) > MAX_CLIENTS:
                too_many = f"Error: {MAX_CLIENTS} clients are connected already. Goodbye."
                self._say_last(client, too_many)
            else:
                self._send(client, GREETING)

    def _on_events(self, client: _Client, mask: int) -> None:
        if mask & selectors.EVENT_WRITE and not client.gone:
            self._write(client)
        if mask & selectors.EVENT_READ and not client.gone:
            self._read(client)

    def _read(self, client: _Client) -> None:
        try:
            data = client.connection.recv(DISCARD_BYTES if client.closing else READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)  # a client that goes away is no news
            return
        if client.closing:
            client.discarded_bytes += len(data)
            if not data or client.discarded_bytes > MAX_DISCARDED_BYTES:
                self._drop(client)
            return  # what it still says after a goodbye is thrown away
        client.deaf = not data
        client.input += data
        self._consume(client)

    def _consume(self, client: _Client) -> None:
        """Carry out the whole lines there are, one after the other: while an answer is awaited, the
        next one waits too.
        """
        client.consuming = True
        while not (client.gone or client.closing or client.awaiting):
            line, end, rest = client.input.partition(b"\n")
            if line.startswith(TLS_HELLO) or (end and HTTP_LINE.match(line)):
                self._drop_http(client)
            elif len(line) > MAX_LINE_BYTES:
                client.input = b""
                self._say_last(client, f"Error: a line may have {MAX_LINE_BYTES} bytes. Goodbye.")
            elif end:
                client.input = rest
                self._line(client, line)
            else:
                break
        client.consuming = False
        if client.deaf and client.input and not (client.closing or client.awaiting):
            # Half a line is no command: "set pageviews_per_second 100" may have lost its last 0.
            self._say_last(client, "Error: the last line has no end. It was not carried out.")
        if not client.gone:
            self._write(client)

    def _drop_http(self, client: _Client) -> None:
        """End a conversation with a web browser at once. The log says so, but not for each one: a
        page can send many.
        """
        self._http_unsaid += 1
        if time.monotonic() > self._http_said_s + SAY_HTTP_EVERY_S:
            more = self._http_unsaid - 1
            self._log(
                f"Control {client.name} dropped: it speaks HTTP or TLS, as a web page in a browser "
                "would to change the load. Nothing after that was carried out."
                + (f" ({more} more since the last such line)" if more else "")
            )
            self._http_said_s, self._http_unsaid = time.monotonic(), 0
        self._drop(client)

    def _line(self, client: _Client, line: bytes) -> None:
        client.watching = False
        answer = self._commands.carry_out(line)
        if line[:3].lower() == b"set" and not answer.text.startswith("Error"):
            self._log(f"Control {client.name}: {answer.text}")
        if answer.then is Then.CLOSE:
            self._say_last(client, answer.text)
        elif answer.text:
            self._send(client, answer.text)
        client.watching = answer.then is Then.WATCH
        if answer.then is Then.FLUSH:
            self._flush(client)

    def _flush(self, client: _Client) -> None:
        def done(line: str) -> None:
            client.awaiting = False
            self._send(client, line)
            if not client.gone and not client.consuming:  # else it was answered at once
                self._consume(client)

        client.awaiting = True
        self._load.flush(done)

    def _say_last(self, client: _Client, line: str) -> None:
        client.watching, client.closing = False, True
        self._send(client, line)

    def _send(self, client: _Client, line: str) -> None:
        if client.gone:
            return
        if len(client.output) > MAX_OUTPUT_BYTES:
            self._drop(client, "does not read what it asked for")
            return
        client.output += line.encode() + b"\n"
        if not client.consuming or len(client.output) > SEND_BYTES:
            self._write(client)

    def _write(self, client: _Client) -> None:
        """Send what the client takes now, and have the selector wait for what comes next."""
        try:
            while client.output:
                sent = client.connection.send(client.output)
                del client.output[:sent]
        except BlockingIOError:
            pass  # the selector says when it takes more
        except OSError:
            self._drop(client)  # a client that goes away is no news
            return
        if not client.output:
            self._finish(client)
        if not client.gone:
            self._watch_for_events(client)

    def _finish(self, client: _Client) -> None:
        """Everything is said. End the conversation if that was all; if the client still talks, let
        it read the end first: closing a socket with unread input takes the last line back.
        """
        if client.deaf and not client.watching and not client.awaiting:
            self._drop(client)
        elif client.closing and not client.leave_by_s:
            client.leave_by_s = time.monotonic() + LINGER_S
            try:
                client.connection.shutdown(socket.SHUT_WR)
            except OSError:
                self._drop(client)  # a client that goes away is no news

    def _watch_for_events(self, client: _Client) -> None:
        reads = not (client.deaf or client.awaiting)
        events = selectors.EVENT_READ if reads else 0
        events |= selectors.EVENT_WRITE if client.output else 0
        if events == client.events:
            return
        if client.events:
            self._selector.unregister(client.connection)
        if events:
            on_events = self._on_events
            self._selector.register(client.connection, events, lambda mask: on_events(client, mask))
        client.events = events

    def _drop(self, client: _Client, why: str = "") -> None:
        if client.gone:
            return
        client.gone = True
        self._clients.discard(client)
        if client.events:
            self._selector.unregister(client.connection)
        client.connection.close()
        if why:
            self._log(f"Control {client.name} dropped: it {why}")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. ConfigError says which setting moves it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"Can't listen on {host}:{port}: {error.strerror or error}. "
            "End what holds it, or set COMMAND_ENDPOINT."
        ) from error
    listener.listen(128)
    return listener
