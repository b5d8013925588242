"""Flink: the demo is run through its SQL gateway; its views, progress too, are upsert topics."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from racetrack.config import Settings
from racetrack.engines.contract import DemoError
from racetrack.engines.flink import checkpoint, script, topics
from racetrack.engines.flink.gateway import Gateway, Refused
from racetrack.engines.flink.job import JobLog
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.stack.contract import Stack

RUNNING_WITHIN_S = 60.0
LOOK_EVERY_S = 0.05
CHECKPOINTS = "execution.checkpointing.dir"
RECOVER_FROM = "execution.state-recovery.path"


class Flink(UpsertEngine):
    """See `racetrack.engines.contract.Engine`."""

    name = "flink"
    title = "Flink"
    order = 3
    needs = ("registry", "debezium")
    services = ("flink",)
    script_ending = ".flink.sql"
    version_part = "flink"
    keeps_first_schemas = True  # its script declares the types of columns
    summary_after_ms = 60  # two views, each written by itself: 42 ms before to 53 after were seen

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

    def watch(self, stack: Stack) -> Callable[[], None]:
        """Its log says whether the job failed; the process goes on without it.

        Raises:
            DemoError: by what is returned, if so.
        """
        return JobLog(stack.log_of("flink")).check

    def clock_slack_ms(self, settings: Settings) -> int:
        """Its window moves by whole seconds, at a tick each 200 ms, through a few mini-batches."""
        return 2_000 + 4 * FlinkSettings.of(settings).flink_mini_batch_ms

    def guarantee(self, settings: Settings) -> str:  # noqa: ARG002
        """Return that each event counts once: it resumes from a checkpoint, or reads all again."""
        return "exactly once"

    def caveats(self, settings: Settings) -> list[str]:
        """Report settings that make results incomparable with Flink's defaults."""
        found = []
        if FlinkSettings.of(settings).flink_upsert_materialize == "NONE":
            found.append(
                "FLINK_UPSERT_MATERIALIZE=NONE: rows of joined views may be wrong or missing."
            )
        if not FlinkSettings.of(settings).flink_checkpoint_ms:
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
        summary, _ = self.progress_topics(stack.settings)

        with self._open_topics(stack.endpoints.kafka) as source:

            def written() -> bool:
                log.check()
                return source.is_written(summary)

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
    """Open a session on the gateway.

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
    """Return the script's statements, with the addresses of this stack."""
    sql = path.read_text()
    return script.statements(_addresses(stack, sql) + sql)


def _gateway_address(settings: Settings) -> str:
    return f"{settings.reach_address}:{FlinkSettings.of(settings).flink_port}"


def _addresses(stack: Stack, sql: str) -> str:
    """Return the script's templates with this stack's addresses, one a line; they replace the
    script's own."""
    kafka, registry = stack.internal_endpoints.kafka, stack.internal_endpoints.registry
    found = ""
    for name, options in re.findall(
        r"^CREATE TABLE IF NOT EXISTS (at_\w+) \(unused AS 1\) WITH \((.*?)^\);",
        sql,
        re.DOTALL | re.MULTILINE,
    ):
        where = options.replace("redpanda:9092", kafka).replace("http://redpanda:8081", registry)
        found += f"CREATE TABLE {name} (unused AS 1) WITH ({' '.join(where.split())});\n"
    return found


ENGINE = Flink()
