"""Flink: the demo is run through its SQL gateway; its views, progress too, are upsert topics."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engines.contract import (
    Access,
    DemoError,
    Engine,
    NoSuchView,
    Progress,
    Reader,
    Seen,
    Summary,
)
from engines.flink import checkpoint, script, topics, views
from engines.flink.gateway import Gateway, Refused
from engines.flink.job import JobLog
from engines.flink.knobs import Knobs
from engines.shared.marks import only_more
from engines.shared.upsert import marks, totals
from engines.shared.upsert import views as upsert
from engines.shared.upsert.topics import Written, is_written, latest
from racetrack.settings import Settings
from racetrack.stack.contract import Stack
from racetrack.workload import MarkedView, find_workload

if TYPE_CHECKING:
    import pyarrow

RUNNING_WITHIN_S = 60.0
LOOK_EVERY_S = 0.05
CHECKPOINTS = "execution.checkpointing.dir"
RECOVER_FROM = "execution.state-recovery.path"


class Flink(Engine):
    """See `engines.contract.Engine`."""

    name = "flink"
    title = "Flink"
    needs = ("registry", "debezium")
    services = ("flink",)
    script_ending = views.ENDING
    summary_after_ms = 25  # one more operator, and a writer of its own: 14 to 17 were seen

    def prepare_inputs(self, stack: Stack) -> None:
        """Make the topics that the script writes to: Flink makes none."""
        sql = self.script(stack.settings).read_text()
        topics.make(stack.endpoints.kafka, script.own_topics(sql))

    def load_demo(self, stack: Stack) -> None:
        """Run the workload's script; its views are there when the first of them is written."""
        self.prepare_inputs(stack)
        with _opened(stack.settings) as gateway:
            gateway.run_all(_statements(stack, self.script(stack.settings)))
        self._wait_until_written(stack)

    def reload_demo(self, stack: Stack) -> None:
        """Let the job go on from its last checkpoint; if there is none, load all of it again."""
        log, found = JobLog(stack.log_of("flink")), None
        with _opened(stack.settings) as gateway:
            if folder := gateway.properties().get(CHECKPOINTS):
                found = checkpoint.last(stack.log_of("flink"), folder)
            if found:
                log.skip()
                gateway.run(f"SET '{RECOVER_FROM}' = '{found}'")
                gateway.run_all(_statements(stack, self.script(stack.settings)))
        if found:
            self._wait(stack, log.has_started, "started no job from its checkpoint")
        else:
            self.load_demo(stack)

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """What Flink writes to the topics of the two progress views; samples of it, where it writes
        a row for every pageview (FLINK_MINI_BATCH_MS=0).

        Raises:
            DemoError: the job failed.
        """
        log = JobLog(stack.log_of("flink"))
        summary, progress = _told_in(stack.settings)
        keys = {summary: 1, progress: stack.settings.pageviews_partitions}
        for written in totals.follow(stack.endpoints.kafka, keys, _total_of, stop):
            if written is None:
                log.check()
            elif written.value is not None:
                row = json.loads(written.value)
                yield _update_of(row, written.at_ms, is_summary=written.topic == summary)

    def seen(
        self, stack: Stack, marked: Sequence[MarkedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """What Flink writes to the views' topics, at the time that the broker took them."""
        rows = marks.by_topic(marked, stack.settings, topics.of_view)
        return only_more(marks.follow(stack.endpoints.kafka, rows, stop))

    def read_view(self, stack: Stack, view: str) -> "pyarrow.Table":
        """The last message of each key of the view's topic."""
        columns = views.columns(stack.settings, view)
        summary, _ = _told_in(stack.settings)
        if not is_written(stack.endpoints.kafka, summary):
            raise NoSuchView(f"The demo is not loaded in {self.title}: {summary} is empty.")
        return upsert.table(columns, latest(stack.endpoints.kafka, topics.of_view(view)))

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """Flink answers nobody: its users read its topics, and keep their rows themselves."""
        return upsert.reader(access, views.columns, topics.of_view)

    def clock_slack_ms(self, settings: Settings) -> int:
        """Its window moves by whole seconds, at a tick each 200 ms, through a few mini-batches."""
        return 2_000 + 4 * Knobs.of(settings).flink_mini_batch_ms

    def caveats(self, settings: Settings) -> list[str]:
        """Settings that make it another engine than the default one."""
        found = []
        if Knobs.of(settings).flink_upsert_materialize == "NONE":
            found.append(
                "FLINK_UPSERT_MATERIALIZE=NONE: rows of joined views may be wrong or missing."
            )
        if not Knobs.of(settings).flink_checkpoint_ms:
            found.append("Flink ran without checkpoints: a job that fails is not restored.")
        return found

    def usage_hints(self, stack: Stack) -> list[str]:
        """Flink's own SQL client, and what to paste there."""
        settings = stack.settings
        path = self.script(settings)
        client = stack.program("flink", "sql-client.sh")
        return [
            f"SQL client: {client} gateway --endpoint {_gateway_address(settings)}",
            "In it, paste these lines, which say where Kafka and the registry are:",
            *_addresses(stack, path.read_text()).splitlines(),
            f"then all of {path}",
        ]

    def _wait_until_written(self, stack: Stack) -> None:
        log = JobLog(stack.log_of("flink"))
        summary, _ = _told_in(stack.settings)

        def written() -> bool:
            log.check()
            return is_written(stack.endpoints.kafka, summary)

        self._wait(stack, written, f"wrote nothing to {summary}")

    def _wait(self, stack: Stack, until: Callable[[], bool], otherwise: str) -> None:
        give_up = time.monotonic() + RUNNING_WITHIN_S
        while not until():
            if time.monotonic() > give_up:
                raise DemoError(
                    f"Flink took the demo, but {otherwise} within {RUNNING_WITHIN_S:.0f} s."
                    f" Its log: {stack.log_of('flink')}"
                )
            time.sleep(LOOK_EVERY_S)


@contextmanager
def _opened(settings: Settings) -> Iterator[Gateway]:
    """A session on its gateway.

    Raises:
        DemoError: it opens none.
    """
    try:
        gateway = Gateway(f"http://{_gateway_address(settings)}")
    except Refused as refused:
        raise DemoError(f"Flink opened no session: {refused}") from refused
    with gateway:
        yield gateway


def _statements(stack: Stack, path: Path) -> list[str]:
    """The script's, with the addresses of this stack."""
    sql = path.read_text()
    return script.statements(_addresses(stack, sql) + sql)


def _gateway_address(settings: Settings) -> str:
    return f"{settings.reach_address}:{Knobs.of(settings).flink_port}"


def _told_in(settings: Settings) -> tuple[str, str]:
    """The topics that say what was counted: the summary, and the progress of each partition."""
    workload = find_workload(settings.workload)
    return topics.of_view(workload.summary), topics.of_view(workload.progress)


def _addresses(stack: Stack, sql: str) -> str:
    """A script's templates with this stack's addresses, a line each; the script's own then stay out
    of the way."""
    kafka, registry = stack.inside.kafka, stack.inside.registry
    found = ""
    for name, options in re.findall(
        r"^CREATE TABLE IF NOT EXISTS (at_\w+) \(unused AS 1\) WITH \((.*?)^\);",
        sql,
        re.DOTALL | re.MULTILINE,
    ):
        where = options.replace("redpanda:9092", kafka).replace("http://redpanda:8081", registry)
        found += f"CREATE TABLE {name} (unused AS 1) WITH ({' '.join(where.split())});\n"
    return found


def _total_of(written: Written) -> int:
    return 0 if written.value is None else int(json.loads(written.value)["total"])


def _update_of(row: dict[str, Any], at_ms: int, *, is_summary: bool) -> Summary | Progress:
    """A message of a progress view. Freshness: how old the newest pageview was when the broker
    took the message, by which it can be read."""
    total, newest_ms = row["total"], row["max_received_at"]
    if is_summary:
        return Summary(at_ms, total, newest_ms, float(at_ms - newest_ms))
    return Progress(at_ms, row["partition"], total, newest_ms)


ENGINE = Flink()
