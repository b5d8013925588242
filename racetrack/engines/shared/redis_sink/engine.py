"""Engines whose program writes its counts to Redis as soon as it runs."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager

from racetrack.engines.contract import Access, Engine, Progress, Reader, Summary
from racetrack.engines.shared.redis_sink import progress, views
from racetrack.stack.contract import Stack


class WritesToRedis(Engine):
    """See `racetrack.engines.contract.Engine`."""

    needs = ("redis",)

    def load_demo(self, stack: Stack) -> None:
        """There is nothing to load: its program counts from when its service is ready."""

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the counts that the engine publishes in Redis whenever it has written there."""
        return progress.follow(stack.endpoints.redis, stop)

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """Open a client of Redis."""
        return views.reader(access)

    def usage_hints(self, stack: Stack) -> list[str]:
        """Say how to look at a view, and where the program is."""
        host, _, port = stack.endpoints.redis.rpartition(":")
        return [
            f"What it has counted: redis-cli -h {host} -p {port} HGETALL {progress.PROGRESS}",
            f"Its stages: {self.script(stack.settings)}, compiled at the next start",
        ]
