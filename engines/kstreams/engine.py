"""Kafka Streams: a program that keeps the views from when it starts; each view, progress too, is an
upsert topic, which is what users of Kafka Streams read."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from engines.contract import (
    Access,
    Engine,
    NoSuchView,
    Progress,
    Reader,
    Seen,
    Summary,
)
from engines.kstreams.knobs import EXACTLY_ONCE, Knobs
from engines.shared.marks import only_more
from engines.shared.upsert import marks, totals, views
from engines.shared.upsert.topics import Written, is_written, latest
from racetrack.clock import now_ms
from racetrack.settings import Settings
from racetrack.stack.contract import Stack
from racetrack.workload import MarkedView, find_workload

if TYPE_CHECKING:
    import pyarrow

TOPIC = "kstreams.{}"

ON_TRANSACTIONS = (
    "KSTREAMS_GUARANTEE=exactly_once_v2: Kafka says when a row was written, not when its"
    " transaction was committed. So rows count from when the harness read them, up to"
    f" {totals.EVERY_S} s later."
)
ON_CHANGELOGS = (
    "KSTREAMS_CHANGELOG=off: Kafka Streams kept no copy of its state. As it is delivered it does."
)


class KafkaStreams(Engine):
    """See `engines.contract.Engine`."""

    name = "kstreams"
    title = "Kafka Streams"
    needs = ("registry", "debezium")
    services = ("kstreams",)
    script_ending = ".kstreams.java"

    def load_demo(self, stack: Stack) -> None:
        """There is nothing to load: its service keeps the views from when it is ready."""

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """What it writes to the topics of the two progress views."""
        clock = _Clock(stack.settings)
        summary, progress = _told_in(stack.settings)
        keys = {summary: 1, progress: stack.settings.pageviews_partitions}
        for written in totals.follow(stack.endpoints.kafka, keys, _total_of, stop):
            if written is not None and written.value is not None:
                at_ms = clock.readable_ms(written.at_ms)
                yield _update_of(written, at_ms, is_summary=written.topic == summary)

    def seen(
        self, stack: Stack, marked: Sequence[MarkedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """What it writes to the views' topics."""
        clock = _Clock(stack.settings)
        rows = marks.by_topic(marked, stack.settings, TOPIC.format)
        for seen in only_more(marks.follow(stack.endpoints.kafka, rows, stop)):
            yield replace(seen, timestamp_ms=clock.readable_ms(seen.timestamp_ms))

    def read_view(self, stack: Stack, view: str) -> "pyarrow.Table":
        """The last message of each key of the view's topic."""
        columns = _columns(stack.settings, view)
        summary, _ = _told_in(stack.settings)
        if not is_written(stack.endpoints.kafka, summary):
            raise NoSuchView(f"{self.title} has written no view yet: {summary} is empty.")
        return views.table(columns, latest(stack.endpoints.kafka, TOPIC.format(view)))

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """It answers nobody: its users read its topics, and keep their rows themselves."""
        return views.reader(access, _columns, TOPIC.format)

    def clock_slack_ms(self, settings: Settings) -> int:
        """Its window moves by whole seconds, at a tick each 200 ms."""
        return 2_000 + 4 * Knobs.of(settings).kstreams_commit_ms

    def caveats(self, settings: Settings) -> list[str]:
        """Settings that make it another engine than the default one, or harder to measure."""
        knobs = Knobs.of(settings)
        return [
            *([ON_TRANSACTIONS] if knobs.kstreams_guarantee == EXACTLY_ONCE else []),
            *([ON_CHANGELOGS] if knobs.kstreams_changelog == "off" else []),
        ]

    def usage_hints(self, stack: Stack) -> list[str]:
        """How to look at a view, and where the program is."""
        where = stack.endpoints.kafka
        return [
            f"Its views are topics: kcat -b {where} -C -e -q -t {_told_in(stack.settings)[0]}",
            f"Its topology: {self.script(stack.settings)}, compiled at the next start",
        ]


class _Clock:
    """When a message could be read that the broker took at some time."""

    def __init__(self, settings: Settings) -> None:
        self._waits_for_commit = Knobs.of(settings).kstreams_guarantee == EXACTLY_ONCE

    def readable_ms(self, at_ms: int) -> int:
        """At once; or, within a transaction, by when it has been read at the latest."""
        return now_ms() if self._waits_for_commit else at_ms


def _told_in(settings: Settings) -> tuple[str, str]:
    """The topics that say what was counted: the summary, and the progress of each partition."""
    workload = find_workload(settings.workload)
    return TOPIC.format(workload.summary), TOPIC.format(workload.progress)


def _columns(settings: Settings, view: str) -> views.Columns:
    found = [each for each in find_workload(settings.workload).views if each.name == view]
    if not found:
        raise NoSuchView(f"Kafka Streams' demo has no view {view!r}.")
    return found[0].columns


def _total_of(written: Written) -> int:
    return 0 if written.value is None else int(json.loads(written.value)["total"])


def _update_of(written: Written, at_ms: int, *, is_summary: bool) -> Summary | Progress:
    """A message of a progress view. Freshness: how old the newest pageview was when the message
    could be read."""
    row = json.loads(written.value or b"")
    total, newest_ms = row["total"], row["max_received_at"]
    if is_summary:
        return Summary(at_ms, total, newest_ms, float(at_ms - newest_ms))
    return Progress(at_ms, row["partition"], total, newest_ms)


ENGINE = KafkaStreams()
