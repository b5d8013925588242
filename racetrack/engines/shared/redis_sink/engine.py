"""Base class of engines whose program writes its counts into Redis."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from racetrack.config import Settings
from racetrack.engines.contract import Access, Engine, Progress, Reader, Seen, Summary
from racetrack.engines.shared.redis_sink import progress, views
from racetrack.engines.shared.tracer import only_more
from racetrack.results.classes import Classes
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import TracedView


class WritesToRedis(Engine):
    """See `racetrack.engines.contract.Engine`."""

    needs = ("redis",)
    ignores_updates_of = ("ads",)  # it looks up the campaign of an ad once, as published
    writes_to = ("the keys of the original benchmark in Redis",)

    def classes(self, settings: Settings) -> Classes:
        """Return what survives a kill by `<engine>_GUARANTEE`. A campaign is looked up once per ad,
        as in the original benchmark."""
        repeats = getattr(settings, f"{self.name}_guarantee") == "at_least_once"
        return Classes(
            results="published to Redis",
            after_a_kill=(
                "resumes, counts some events twice" if repeats else "resumes, loses some events"
            ),
            work="as events arrive",
            views="programmed",
            changes="ignores changes",
        )

    def load_demo(self, stack: Stack) -> None:
        """Do nothing: the engine's program begins to count when its service starts."""

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the counts that the engine publishes in Redis whenever it writes."""
        return progress.follow(stack.endpoints.redis, stop)

    def seen(
        self, stack: Stack, traced: Sequence[TracedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """Yield the tracer values that a client of Redis reads."""
        return only_more(views.follow(stack.endpoints.redis, traced, stack.settings, stop))

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """Open a client of Redis."""
        return views.reader(access)

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return how to read a view, and where the program's source is."""
        host, _, port = stack.endpoints.redis.rpartition(":")
        return [
            f"Counts so far: redis-cli -h {host} -p {port} HGETALL {progress.PROGRESS}",
            f"Source of the stages: {self.script(stack.settings)}; it is compiled at every start",
        ]
