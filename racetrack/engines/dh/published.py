"""Views of Deephaven that are published to Kafka (DEEPHAVEN_PUBLISH), and then followed and read
there, like those of engines whose views are topics."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from racetrack.config import Settings
from racetrack.engines.dh.connection import Refused, reading
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.engines.shared.upsert import tracer
from racetrack.engines.shared.upsert.engine import FollowTracer, OpenTopics, UpsertEngine
from racetrack.engines.shared.upsert.topics import Topics
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import find_workload

PUBLISH = Path(__file__).with_name("publish.py")


class PublishedViews(UpsertEngine):
    """Follows and reads the topics of the views."""

    name = "dh"
    title = "Deephaven"
    services = ("deephaven",)

    def __init__(
        self,
        open_topics: OpenTopics = Topics,
        follow_tracer: FollowTracer = tracer.follow,
        check_every_s: float = 10.0,
    ) -> None:
        """Create it; see `watch` for `check_every_s`."""
        super().__init__(open_topics, follow_tracer)
        self._check_every_s = check_every_s

    def topics(self, settings: Settings) -> list[str]:
        """Return the topics of the workload's views."""
        return [self.topic_of(view) for view in keys_of(settings)]

    def watch(self, stack: Stack) -> Callable[[], None]:
        """Return a function that checks at most every `check_every_s` whether the progress view has
        failed. Deephaven keeps running then."""
        namespace = self.namespace(stack.settings)
        progress = find_workload(stack.settings.workload).progress
        table = f"{namespace}_{progress}" if namespace else progress
        due_s = time.monotonic() + self._check_every_s

        def check() -> None:
            nonlocal due_s
            if time.monotonic() >= due_s:
                require_no_failure(stack.settings, table)
                due_s = time.monotonic() + self._check_every_s

        return check


def publishes(settings: Settings) -> bool:
    """Return whether the views are published, and followed in Kafka."""
    return DeephavenSettings.of(settings).deephaven_publish


def keys_of(settings: Settings) -> dict[str, list[str]]:
    """Return the workload's views with their key columns."""
    return {view.name: list(view.key) for view in find_workload(settings.workload).views}


def code(keys: Mapping[str, Sequence[str]]) -> str:
    """Return code that publishes these views, given with their key columns. It has to run where the
    workload's script ran."""
    return f"{PUBLISH.read_text()}\n\n{call(keys)}\n"


def call(keys: Mapping[str, Sequence[str]]) -> str:
    """Return the line of `code` that publishes the views."""
    return f"publish(globals(), {json.dumps(keys)})"


def require_no_failure(settings: Settings, table: str) -> None:
    """Check that a table has not failed, if the server and the table are there.

    Raises:
        RacetrackError: the table has failed.
    """
    try:
        with reading(settings) as session:
            if table in session.tables:
                # The server refuses operations on a failed table.
                session.open_table(table).view(["total"])
    except Refused:
        return  # the stack reports a server that has ended


PUBLISHED = PublishedViews()
