"""A relay of TCP connections that delays data and can be cut."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK_BYTES = 1 << 16


class Relay:
    """Relays connections from the port `port` to the port `target`, both on this machine. `delay_s`
    is added each way, without limiting the throughput."""

    def __init__(self, port: int, target: int, delay_s: float = 0.0) -> None:
        self.delay_s, self.is_cut = delay_s, False
        self._port, self._target = port, target
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()

    def cut(self) -> None:
        """Close all connections, and accept none until `mend`."""
        self.is_cut = True
        self._loop.call_soon_threadsafe(self._close_all)

    def mend(self) -> None:
        """Accept connections again."""
        self.is_cut = False

    def _close_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                self._loop.call_later(self.delay_s, self._write, writer, data)
        self._loop.call_later(self.delay_s, writer.close)

    def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if not writer.is_closing():
            writer.write(data)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", self._port)

    async def _end(self, server: asyncio.Server) -> None:
        server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    @contextmanager
    def running(self) -> Iterator["Relay"]:
        """Run the relay in a thread until the block ends."""
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(5)
        try:
            yield self
        finally:
            self.cut()
            asyncio.run_coroutine_threadsafe(self._end(server), self._loop).result(5)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(5)
