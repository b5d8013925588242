"""Control server: serves many clients, none of which can delay the load or use much memory.

Each client has a bounded line and a bounded output, and is disconnected when it exceeds either."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from typing import Callable

from loadgen.commands import Commands, Load, Then
from loadgen.config import ConfigError

GREETING = "LOADGEN Connected."
MAX_LINE_BYTES = 1_000
# With this much unread output the server waits this long for the client to read, then disconnects
# it.
WAIT_OUTPUT_BYTES, READ_WITHIN_S = 64 * 1024, 5.0
# A client with this much unread output is disconnected: about 300 lines of `watch`, half a minute
# without reading.
MAX_OUTPUT_BYTES = 256 * 1024
MAX_CLIENTS = 500
# After the last answer a client has this long to close its side, and may send this much.
LINGER_S = 2.0
MAX_DISCARDED_BYTES = 4 * 1024 * 1024
# A web page in a browser on this machine can send a request to this port, and the request's body
# would be executed as commands. So a line of HTTP, or the start of TLS, ends the connection.
HTTP_LINE = re.compile(rb"\S+ \S+ HTTP/\d|Host:", re.IGNORECASE)
TLS_HELLO = b"\x16\x03"
LOG_HTTP_EVERY_S = 10.0


class _Dropped(Exception):
    """Connection ended by the server; the message, if any, goes to the log."""


class _Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        host, port = writer.get_extra_info("peername")[:2]
        self.name = f"{host}:{port}"
        self.watching = False
        writer.transport.set_write_buffer_limits(high=WAIT_OUTPUT_BYTES)

    @property
    def is_open(self) -> bool:
        return not self._writer.transport.is_closing()

    async def read_line(self) -> bytes | None:
        """Return the next line without its end; None after the last one.

        Raises:
            asyncio.LimitOverrunError: the line is longer than MAX_LINE_BYTES.
            asyncio.IncompleteReadError: the client closed its side in the middle of a line.
        """
        try:
            line = await self._reader.readuntil()
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return None
        return line[:-1]

    def send(self, line: str) -> None:
        """Send a line without waiting.

        Raises:
            _Dropped: the client does not read its output.
        """
        if self._writer.transport.get_write_buffer_size() > MAX_OUTPUT_BYTES:
            raise self.drop("does not read its answers")
        self._writer.write(line.encode() + b"\n")

    async def drain(self) -> None:
        """Wait until the client has read most of its output.

        Raises:
            _Dropped: the client does not read its output.
        """
        try:
            await asyncio.wait_for(self._writer.drain(), READ_WITHIN_S)
        except asyncio.TimeoutError:
            raise self.drop("does not read its answers") from None

    async def hang_up(self) -> None:
        """Close this side of the connection, then wait until the client closes its side.

        Closing a socket with unread input would discard output that the client has not read yet.
        """
        self._writer.write_eof()
        try:
            await asyncio.wait_for(self._discard(), LINGER_S)
        except asyncio.TimeoutError:
            return

    async def _discard(self) -> None:
        discarded = 0
        while discarded < MAX_DISCARDED_BYTES and (data := await self._reader.read(1 << 16)):
            discarded += len(data)

    def drop(self, why: str = "") -> _Dropped:
        """Abort the connection; return the exception to raise."""
        self._writer.transport.abort()
        return _Dropped(why)

    def close(self) -> None:
        """Close the connection after its output is sent."""
        self._writer.close()


class ControlServer:
    """Accepts clients and executes their commands."""

    def __init__(
        self,
        load: Load,
        log: Callable[[str], None],
        max_clients: int = MAX_CLIENTS,
        log_http_every_s: float = LOG_HTTP_EVERY_S,
    ) -> None:
        self._load, self._log = load, log
        self._max_clients, self._log_http_every_s = max_clients, log_http_every_s
        self._commands = Commands(load)
        self._clients: set[_Client] = set()
        self._server: asyncio.AbstractServer | None = None
        self._http_logged_s = float("-inf")
        self._http_unlogged = 0

    async def start(self, listener: socket.socket) -> None:
        """Start to accept clients from a listening socket."""
        self._server = await asyncio.start_server(
            self._converse, sock=listener, limit=MAX_LINE_BYTES
        )

    def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server:
            self._server.close()
        for client in list(self._clients):
            client.drop()

    def broadcast(self) -> None:
        """Send the statistics to watching clients. Call every 100 ms."""
        watchers = [client for client in self._clients if client.watching and client.is_open]
        if not watchers:
            return
        line = self._load.stats_line()
        for client in watchers:
            try:
                client.send(line)
            except _Dropped as dropped:
                self._log_drop(client, dropped)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(reader, writer)
        self._clients.add(client)
        try:
            if len(self._clients) > self._max_clients:
                client.send(f"Error: {self._max_clients} clients are connected already. Goodbye.")
                await client.hang_up()
            else:
                client.send(GREETING)
                await self._serve(client)
        except _Dropped as dropped:
            self._log_drop(client, dropped)
        except ConnectionError:
            pass  # clients disconnect at any time
        finally:
            self._clients.discard(client)
            client.close()

    async def _serve(self, client: _Client) -> None:
        """Execute lines until the client or the server ends the connection."""
        try:
            while (line := await client.read_line()) is not None:
                if line.startswith(TLS_HELLO) or HTTP_LINE.match(line):
                    self._log_http(client)
                    raise client.drop()
                if not await self._execute(client, line):
                    await client.hang_up()
                    return
                await asyncio.sleep(0)  # let other clients run
        except asyncio.LimitOverrunError:
            client.send(f"Error: a line may have {MAX_LINE_BYTES} bytes. Goodbye.")
            await client.hang_up()
        except asyncio.IncompleteReadError:
            # Do not execute an incomplete line: "set events_per_second 100" may lack its last 0.
            client.send("Error: the last line has no end. It was not executed.")
        while client.watching and client.is_open:  # the client sends no more, but still reads
            await asyncio.sleep(LINGER_S)

    async def _execute(self, client: _Client, line: bytes) -> bool:
        """Execute a line and send the answer; return whether the connection stays open."""
        client.watching = False
        answer = self._commands.execute(line)
        if line[:3].lower() == b"set" and not answer.text.startswith("Error"):
            self._log(f"Control {client.name}: {answer.text}")
        text = answer.text
        if answer.then is Then.FLUSH:
            text = await self._flush()
        if text:
            client.send(text)
            await client.drain()
        client.watching = answer.then is Then.WATCH
        return answer.then is not Then.CLOSE

    async def _flush(self) -> str:
        flushed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def done(line: str) -> None:
            if not flushed.done():  # the client may have disconnected
                flushed.set_result(line)

        self._load.flush(done)
        return await flushed

    def _log_http(self, client: _Client) -> None:
        """Log a disconnected browser, once in a while: a page can send many requests."""
        self._http_unlogged += 1
        if time.monotonic() > self._http_logged_s + self._log_http_every_s:
            more = self._http_unlogged - 1
            self._log(
                f"Control {client.name} dropped: it speaks HTTP or TLS, as a web page in a browser "
                "would to change the load. Nothing after that was executed."
                + (f" ({more} more since the last such line)" if more else "")
            )
            self._http_logged_s, self._http_unlogged = time.monotonic(), 0

    def _log_drop(self, client: _Client, dropped: _Dropped) -> None:
        if str(dropped):
            self._log(f"Control {client.name} dropped: it {dropped}")


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        ConfigError: the address is taken or unknown; the message names the setting.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"Can't listen on {host}:{port}: {error.strerror or error}. "
            "Stop the process that uses it, or set COMMAND_ENDPOINT."
        ) from error
    listener.listen(128)
    return listener
