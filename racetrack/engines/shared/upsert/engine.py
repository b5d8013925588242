"""Base class of engines that write all views, including the progress views, into upsert topics.

By default, the views exist as soon as the engine's service is ready, and a view without a topic
counts as absent."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from racetrack.config import Settings
from racetrack.engines.contract import (
    Access,
    Engine,
    NoSuchView,
    Progress,
    Reader,
    Seen,
    Summary,
)
from racetrack.engines.shared.tracer import only_more
from racetrack.engines.shared.upsert import totals, tracer, views
from racetrack.engines.shared.upsert.topics import Topics, Written
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import TracedView, find_workload

if TYPE_CHECKING:
    import pyarrow


OpenTopics = Callable[[KafkaEndpoint], AbstractContextManager[Topics]]
FollowTracer = Callable[[KafkaEndpoint, Mapping[str, tracer.Rows], threading.Event], Iterator[Seen]]


class UpsertEngine(Engine):
    """Engine that writes each view into a topic named `<engine>.<view>`."""

    stamped_by = "broker"

    def __init__(
        self, open_topics: OpenTopics = Topics, follow_tracer: FollowTracer = tracer.follow
    ) -> None:
        """Create the engine. The arguments are the functions that read its topics from Kafka; tests
        replace them."""
        self._open_topics, self._follow_tracer = open_topics, follow_tracer

    def topic_of(self, view: str) -> str:
        """Return the topic of a view."""
        return f"{self.name}.{view}"

    def readable_ms(self, settings: Settings, at_ms: int) -> int:  # noqa: ARG002
        """Return when clients could first read a message that the broker received at `at_ms`,
        by this machine's clock. By default this is the same time."""
        return at_ms

    def load_demo(self, stack: Stack) -> None:
        """Do nothing: the engine's service creates the views when it starts."""

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the updates that the engine writes to the topics of the two progress views."""
        settings = stack.settings
        summary, progress = self.progress_topics(settings)
        keys = {summary: 1, progress: settings.events_partitions}
        look, ahead_ms = self.watch(stack), _ahead_ms(stack)
        with self._open_topics(stack.endpoints.kafka) as source:
            for written in totals.follow(source, keys, _total_of, stop):
                if written is None:
                    look()
                elif written.value is not None:
                    at_ms = self.readable_ms(settings, written.at_ms - ahead_ms)
                    yield _update_of(written, at_ms, is_summary=written.topic == summary)

    def seen(
        self, stack: Stack, traced: Sequence[TracedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """Yield the tracer values that the engine writes to the views' topics."""
        with self._open_topics(stack.endpoints.kafka) as source:
            there = source.names()
        written = [view for view in traced if self.topic_of(view.view) in there]
        rows = tracer.by_topic(written, stack.settings, self.topic_of)
        yield from only_more(self._follow_tracer(stack.endpoints.kafka, rows, stop))

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """Open a reader of the engine's topics. No server of the engine answers queries, so clients
        read the topics, and keep the current rows of the views in `access.queries` in memory."""
        kept = self._kept(access) if access.queries else {}
        read_once = partial(self._read_once, access)
        return views.open_reader(access.endpoints.kafka, kept, read_once)

    def _kept(self, access: Access) -> Mapping[str, views.KeptView]:
        with self._open_topics(access.endpoints.kafka) as source:
            there = source.names()
        topics = {query.view: self.topic_of(query.view) for query in access.queries}
        return {
            view: views.KeptView(topic, self.columns(access.settings, view))
            for view, topic in sorted(topics.items())
            if topic in there
        }

    def _read_once(self, access: Access, view: str) -> "pyarrow.Table":
        """Return the last message of each key of the view's topic, and all messages without
        one."""
        columns, topic = self.columns(access.settings, view), self.topic_of(view)
        first = self.first_topic(access.settings)
        with self._open_topics(access.endpoints.kafka) as source:
            if topic not in source.names():
                raise NoSuchView(f"{self.title}'s demo does not create the view {view!r}.")
            if not source.is_written(first):
                raise NoSuchView(f"{self.title} has written no view yet: {first} is empty.")
            return views.table(columns, source.latest(topic))

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return how to read a view, and where the program's source is."""
        where, first = stack.endpoints.kafka, self.first_topic(stack.settings)
        sources = ", ".join(map(str, self.programs(stack.settings)))
        return [
            f"Its views are topics: kcat -b {where} -C -e -q -t {first}",
            f"Source of the views: {sources}; it is compiled at every start",
        ]

    def progress_topics(self, settings: Settings) -> tuple[str, str]:
        """Return the names of two topics: of the summary view and of the progress view."""
        workload = find_workload(settings.workload)
        return self.topic_of(workload.summary), self.topic_of(workload.progress)

    def first_topic(self, settings: Settings) -> str:
        """Return the name of the topic that tells whether the engine has written results: that of
        the summary view or, in a workload without one, of the first traced view."""
        workload = find_workload(settings.workload)
        return self.topic_of(workload.summary or self.traced_views(settings)[0].view)

    def columns(self, settings: Settings, view: str) -> views.Columns:
        """Return a view's columns.

        Raises:
            NoSuchView: there is no such view.
        """
        matching = [shown for shown in find_workload(settings.workload).views if shown.name == view]
        if not matching:
            raise NoSuchView(f"{self.title}'s demo has no view {view!r}.")
        return matching[0].columns


def _ahead_ms(stack: Stack) -> int:
    """Return how far the broker's clock, which sets the messages' timestamps, is ahead of this
    machine's."""
    clock = stack.clocks.get("broker")
    return round(clock.offset_ms) if clock else 0


def _total_of(written: Written) -> int:
    return 0 if written.value is None else int(json.loads(written.value)["total"])


def _update_of(written: Written, at_ms: int, *, is_summary: bool) -> Summary | Progress:
    """Return the update in a message of a progress view. `at_ms` is when the message could be read;
    freshness is the age of the newest event at that time."""
    row = json.loads(written.value or b"")
    total, newest_ms = row["total"], row["max_received_at"]
    if is_summary:
        return Summary(at_ms, total, newest_ms, float(at_ms - newest_ms))
    return Progress(at_ms, row["partition"], total, newest_ms)
