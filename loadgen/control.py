"""The control socket: a line protocol for people with `nc` and for programs, which nothing a client
does can stall.

Every client has a bounded line, a bounded output, and is dropped when it exceeds either.
"""

from __future__ import annotations

import errno
import selectors
import socket
import time
from typing import Callable

from loadgen.config import MAX_RATE_PER_S, ConfigError, parse_rate_milli, show_rate

GREETING = "LOADGEN Connected."
KEYS = ("pageviews_per_second", "purchases_per_second")
MAX_LINE_BYTES = 1_000
# About 100 lines of `watch`: ten seconds of a client that does not read.
MAX_OUTPUT_BYTES = 256 * 1024
MAX_CLIENTS = 500
# After a goodbye, a client gets this long, and may say this much, until it has closed its side.
LINGER_S = 2.0
MAX_DISCARDED_BYTES = 4 * 1024 * 1024
HELP = """\
Commands, one a line:
  set pageviews_per_second N    change the rate; 0 pauses (up to three decimals)
  set purchases_per_second N    the same for purchases
  get KEY                       the current value of pageviews_per_second or purchases_per_second
  stats                         counts, rates and lateness so far, as one line of JSON
  watch                         that line every 100 ms, until you send another line
  flush                         wait until everything handed over has left the Kafka client's queue
  help                          this
  quit                          end the conversation"""


class Load:
    """What the control socket steers. Implemented by the generator, and by a fake in tests."""

    def get_rate_milli(self, key: str) -> int:
        """The rate of one of KEYS, thousandths per second."""
        raise NotImplementedError

    def set_rate_milli(self, key: str, milli_per_s: int) -> None:
        """Change it; takes effect within 50 ms."""
        raise NotImplementedError

    def stats_line(self) -> str:
        """The statistics as JSON without a line end."""
        raise NotImplementedError

    def flush(self, done: Callable[[str], None]) -> None:
        """Flush; `done` is called, now or later, with the line to answer."""
        raise NotImplementedError


class _Client:
    """One conversation."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.connection = connection
        self.name = name
        self.input = b""
        self.output = bytearray()
        self.watching = False
        self.awaiting = False  # an answer is to come, and nothing is read until then
        self.deaf = False  # it has closed its side, but may still read
        self.closing = False  # a last line has been said
        self.leave_by_s = 0.0  # it is only waited for so that the last line arrives
        self.discarded_bytes = 0
        self.events = 0  # what the selector watches
        self.gone = False


class ControlServer:
    """Accepts clients on a listening socket and carries out what they say.

    Driven by a selector whose `data` are callbacks.
    """

    def __init__(
        self,
        listener: socket.socket,
        selector: selectors.BaseSelector,
        load: Load,
        log: Callable[[str], None],
    ) -> None:
        self._listener, self._selector, self._load, self._log = listener, selector, load, log
        self._clients: set[_Client] = set()
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ, lambda _mask: self._accept())

    def close(self) -> None:
        """Stop listening and end every conversation."""
        self._selector.unregister(self._listener)
        self._listener.close()
        for client in list(self._clients):
            self._drop(client, "")

    def broadcast(self) -> None:
        """Send the statistics to those who watch; called every 100 ms."""
        for client in [client for client in self._clients if client.leave_by_s]:
            if time.monotonic() > client.leave_by_s:
                self._drop(client, "")
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
                if error.errno in (errno.ECONNABORTED, errno.EINTR):
                    continue  # it went away before it was let in
                raise
            connection.setblocking(False)
            client = _Client(connection, "{}:{}".format(*address[:2]))
            self._clients.add(client)
            if len(self._clients) > MAX_CLIENTS:
                self._say_last(
                    client, f"Error: {MAX_CLIENTS} clients are connected already. Goodbye."
                )
            else:
                self._send(client, GREETING)

    def _callback(self, client: _Client) -> Callable[[int], None]:
        def ready(mask: int) -> None:
            if mask & selectors.EVENT_WRITE and not client.gone:
                self._write(client)
            if mask & selectors.EVENT_READ and not client.gone:
                self._read(client)

        return ready

    def _read(self, client: _Client) -> None:
        try:
            data = client.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(client, f"broke off: {error}")
            return
        if client.closing:
            client.discarded_bytes += len(data)
            if not data or client.discarded_bytes > MAX_DISCARDED_BYTES:
                self._drop(client, "")
            return  # what it still says after a goodbye is thrown away
        if not data:
            self._end_of_input(client)
            return
        client.input += data
        self._consume(client)

    def _consume(self, client: _Client) -> None:
        """Carry out the whole lines there are, one after the other: while an answer is awaited, the
        next one waits too.
        """
        while not (client.gone or client.closing or client.awaiting):
            line, end, rest = client.input.partition(b"\n")
            if not end:
                break
            client.input = rest
            self._line(client, line)
        if (
            not client.awaiting
            and len(client.input) > MAX_LINE_BYTES
            and not (client.gone or client.closing)
        ):
            self._too_long(client)

    def _end_of_input(self, client: _Client) -> None:
        """Half a line is no command: "set pageviews_per_second 100" may have been meant to end in
        000.
        """
        client.deaf = True
        if client.input:
            self._say_last(
                client, "Error: the last line has no end and was not carried out. Goodbye."
            )
        else:
            self._write(client)

    def _too_long(self, client: _Client) -> None:
        client.input = b""
        self._say_last(client, f"Error: a line may have {MAX_LINE_BYTES} bytes. Goodbye.")

    def _line(self, client: _Client, raw: bytes) -> None:
        if len(raw) > MAX_LINE_BYTES:
            self._too_long(client)
            return
        try:
            words = raw.decode("ascii").split()
        except UnicodeDecodeError:
            self._send(client, "Error: that is not text. Try: help")
            return
        client.watching = False
        if words:
            self._command(client, words)

    def _command(self, client: _Client, words: list[str]) -> None:
        commands: dict[str, tuple[int, Callable[..., None]]] = {
            "set": (2, self._set),
            "get": (1, self._get),
            "stats": (0, self._stats),
            "watch": (0, self._watch),
            "flush": (0, self._flush),
            "help": (0, self._help),
            "quit": (0, self._quit),
        }
        name, arguments = words[0].lower(), words[1:]
        if name not in commands:
            self._send(client, f"Error: unknown command {_shown(words[0])}. Try: help")
            return
        count, run = commands[name]
        if len(arguments) != count:
            self._send(
                client,
                f"Error: {name} takes {count or 'no'} argument{'' if count == 1 else 's'}, {len(arguments)} given. Try: help",
            )
            return
        run(client, *arguments)

    def _set(self, client: _Client, key: str, value: str) -> None:
        key = key.lower()
        if key not in KEYS:
            self._unknown_key(client, key)
            return
        milli = parse_rate_milli(value)
        if milli is None:
            self._send(
                client,
                f"Error: {_shown(value)} is not a rate: a number from 0 to {MAX_RATE_PER_S}, at most three decimals.",
            )
            return
        old = self._load.get_rate_milli(key)
        self._load.set_rate_milli(key, milli)
        self._log(f"Control {client.name}: {key} {show_rate(milli)}")
        self._send(
            client,
            f"Setting {key}: old value was {show_rate(old)}, new value is {show_rate(milli)}.",
        )

    def _get(self, client: _Client, key: str) -> None:
        key = key.lower()
        if key in KEYS:
            self._send(client, f"{key} {show_rate(self._load.get_rate_milli(key))}")
        else:
            self._unknown_key(client, key)

    def _unknown_key(self, client: _Client, key: str) -> None:
        self._send(client, f"Error: unknown key {_shown(key)}. The keys: {', '.join(KEYS)}")

    def _stats(self, client: _Client) -> None:
        self._send(client, self._load.stats_line())

    def _watch(self, client: _Client) -> None:
        self._send(client, self._load.stats_line())
        client.watching = True

    def _flush(self, client: _Client) -> None:
        def answer(line: str) -> None:
            client.awaiting = False
            self._send(client, line)
            self._consume(client)

        client.awaiting = True
        self._load.flush(answer)

    def _help(self, client: _Client) -> None:
        self._send(client, HELP)

    def _quit(self, client: _Client) -> None:
        self._say_last(client, "Goodbye.")

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
        self._write(client)

    def _write(self, client: _Client) -> None:
        try:
            while client.output:
                sent = client.connection.send(client.output)
                del client.output[:sent]
        except BlockingIOError:
            pass  # the selector says when it takes more
        except OSError as error:
            self._drop(client, f"broke off: {error}")
            return
        if not client.output:
            self._finish(client)
        if not client.gone:
            self._watch_for_events(client)

    def _finish(self, client: _Client) -> None:
        """Everything is said.

        End the conversation if that was all; if the client still talks, let it read the end first:
        closing a socket with unread input would take the last line back from it.
        """
        if client.deaf and not client.watching and not client.awaiting:
            self._drop(client, "")
        elif client.closing and not client.leave_by_s:
            client.leave_by_s = time.monotonic() + LINGER_S
            try:
                client.connection.shutdown(socket.SHUT_WR)
            except OSError as error:
                self._drop(client, f"broke off: {error}")

    def _watch_for_events(self, client: _Client) -> None:
        events = (0 if client.deaf or client.awaiting else selectors.EVENT_READ) | (
            selectors.EVENT_WRITE if client.output else 0
        )
        if events == client.events:
            return
        if client.events == 0:
            self._selector.register(client.connection, events, self._callback(client))
        elif events == 0:
            self._selector.unregister(client.connection)
        else:
            self._selector.modify(client.connection, events, self._callback(client))
        client.events = events

    def _drop(self, client: _Client, why: str) -> None:
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
            f"Can't listen on {host}:{port}: {error.strerror or error}. End what holds it, or set COMMAND_ENDPOINT."
        ) from error
    listener.listen(128)
    return listener


def _shown(text: str) -> str:
    """A client's word, printable and short."""
    return repr(text[:40] + ("..." if len(text) > 40 else ""))
