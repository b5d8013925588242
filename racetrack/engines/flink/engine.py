"""Flink: runs the demo through its SQL gateway. All views, including the progress views, are upsert
topics."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from racetrack.clock import now_ms, wait_until
from racetrack.config import Settings
from racetrack.engines.contract import DemoError
from racetrack.engines.flink import script
from racetrack.engines.flink.elsewhere import ELSEWHERE
from racetrack.engines.flink.gateway import Gateway, Refused
from racetrack.engines.flink.job import JobElsewhere, JobLog, last_checkpoint
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.engines.shared.upsert import new_topics, totals
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.results.classes import AfterAKill, Classes
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import find_workload

RUNNING_WITHIN_S = 60.0
LOOK_EVERY_S = 0.05
CHECKPOINTS = "execution.checkpointing.dir"
RECOVER_FROM = "execution.state-recovery.path"
# Packages of Kafka's client. Flink's connector contains the client under another package name.
CLIENT = "org.apache.kafka."
SHADED = f"org.apache.flink.kafka.shaded.{CLIENT}"
# Beginnings of the names of a table's options, also in FLINK_PROPERTIES: properties of its Kafka
# client, and options of writing.
OF_CLIENTS, OF_SINKS = "properties.", "sink."
# The broker allows at most 15 minutes. A source must not read the rows of open transactions.
TRANSACTIONS = {
    f"{OF_CLIENTS}transaction.timeout.ms": "900000",
    f"{OF_CLIENTS}isolation.level": "read_committed",
}
NO_CHECKPOINTS = (
    "Flink ran without checkpoints: a failed job has to be started by hand, and reads all input"
    " again."
)
ON_TRANSACTIONS = (
    "FLINK_GUARANTEE=exactly_once: rows can be read after the next checkpoint"
    " (FLINK_CHECKPOINT_MS). They count from when the harness read them, which is up to"
    f" {totals.EVERY_S} s later."
)
NO_TRANSACTIONS = (
    "FLINK_GUARANTEE=at_least_once: rows that a killed Flink wrote after its last checkpoint stay,"
    " also those that are no longer part of a view. With exactly_once rows show at checkpoints."
)


class Flink(UpsertEngine):
    """See `racetrack.engines.contract.Engine`."""

    name = "flink"
    title = "Flink"
    order = 3
    needs = ("registry", "debezium")
    runtimes = ("native", "compose", "kubernetes")
    scalable_on = ("kubernetes",)
    services = ("flink",)
    kafka_elsewhere = True
    # Flink's connector lacks Jackson, which Kafka's client needs to read tokens.
    script_ending = ".flink.sql"
    version_part = "flink"
    keeps_first_schemas = True  # the script declares the types of columns
    summary_after_ms = 60  # the largest difference observed was 53 ms

    def prepare_inputs(self, stack: Stack) -> None:
        """Create the topics to which the script writes, since Flink does not create topics."""
        sql = _text_of(self.programs(stack.settings))
        own, appended = script.own_topics(sql), script.appended_topics(sql)
        new_topics.make(stack.endpoints.kafka, own, appended)

    def load_demo(self, stack: Stack) -> None:
        """Run the workload's script; return when Flink has written the first rows of a view."""
        self.prepare_inputs(stack)
        job = self._job(stack)
        job.skip()  # ignore an earlier job, which may have failed because it lost a TaskManager
        with _session(stack.settings) as gateway, ELSEWHERE.submission():
            gateway.run_all(statements_for(stack, *self.programs(stack.settings)))
        self._wait_until_written(stack, job)

    def remarks(self, stack: Stack) -> list[str]:
        """If the user provides Flink, return a line with the job's name."""
        return ELSEWHERE.remarks(stack.settings) if self.runs_elsewhere(stack.settings) else []

    def versions(self, stack: Stack) -> Mapping[str, str]:
        """Return the version of a Flink that the user provides."""
        if not self.runs_elsewhere(stack.settings):
            return {}
        with _session(stack.settings) as gateway:
            return {self.version_part: gateway.version()}

    def reload_demo(self, stack: Stack) -> None:
        """Resume the job from its last checkpoint. If there is no checkpoint, load the demo
        again."""
        log, checkpoint = JobLog(stack.log_of("flink")), None
        with _session(stack.settings) as gateway:
            if folder := gateway.properties().get(CHECKPOINTS):
                checkpoint = last_checkpoint(stack.log_of("flink"), folder)
            if checkpoint:
                log.skip()
                gateway.run(f"SET '{RECOVER_FROM}' = '{checkpoint}'")
                gateway.run_all(statements_for(stack, *self.programs(stack.settings)))
        if checkpoint:
            self._wait(log.has_started, "started no job from its checkpoint", log)
        else:
            self.load_demo(stack)

    def watch(self, stack: Stack) -> Callable[[], None]:
        """Return a function that raises DemoError if the job has failed. Flink's process keeps
        running after its job has failed."""
        return self._job(stack).check

    def _job(self, stack: Stack) -> JobLog | JobElsewhere:
        if self.runs_elsewhere(stack.settings):
            return JobElsewhere(stack.settings)
        return JobLog(stack.log_of("flink"))

    def readable_ms(self, settings: Settings, at_ms: int) -> int:
        """Return `at_ms`; if Flink uses transactions, return the current time, since a row can be
        read only after its transaction was committed, and the time of the commit is unknown."""
        return now_ms() if FlinkSettings.of(settings).uses_transactions else at_ms

    def clock_slack_ms(self, settings: Settings) -> int:
        """Return two seconds, since the time window moves by whole seconds, plus the time of a few
        mini-batches, and of the checkpoints if rows can be read only after them."""
        own = FlinkSettings.of(settings)
        hidden_ms = 2 * own.flink_checkpoint_ms if own.uses_transactions else 0
        return 2_000 + 4 * own.flink_mini_batch_ms + hidden_ms

    def classes(self, settings: Settings) -> Classes:
        """Return that a job resumes from its last checkpoint if it makes any, which pods can't;
        without transactions, with rows that were written later. The configuration of a Flink
        elsewhere is unknown."""
        own = FlinkSettings.of(settings)
        after_a_kill: AfterAKill = "reads all input again"
        if own.resumes:
            is_exact = own.uses_transactions
            after_a_kill = "resumes" if is_exact else "resumes, leaves some rows wrong"
        return Classes(
            results="published to Kafka",
            after_a_kill="" if self.runs_elsewhere(settings) else after_a_kill,
            work="as events arrive",
            views="declarative",
            changes="follows changes",
        )

    def bytes_per_event(self, settings: Settings) -> float:
        """Return what the shop's state on the heap needs: three million events filled 1 GiB."""
        on_heap = FlinkSettings.of(settings).flink_state_backend == "hashmap"
        return 358.0 if on_heap and settings.workload == "shop" else 0.0

    def caveats(self, settings: Settings) -> list[str]:
        """Report settings that make results incomparable with Flink's defaults."""
        if self.runs_elsewhere(settings):
            return []
        caveats = []
        if FlinkSettings.of(settings).flink_upsert_materialize == "NONE":
            caveats.append(
                "FLINK_UPSERT_MATERIALIZE=NONE: rows of joined views may be wrong or missing."
            )
        if not FlinkSettings.of(settings).resumes:
            caveats.append(NO_CHECKPOINTS)
        elif FlinkSettings.of(settings).uses_transactions:
            caveats.append(ON_TRANSACTIONS)
        else:
            caveats.append(NO_TRANSACTIONS)
        return caveats

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return the command of Flink's SQL client, and the lines to paste there."""
        settings = stack.settings
        programs = self.programs(settings)
        elsewhere = self.runs_elsewhere(settings)
        client = "sql-client.sh" if elsewhere else stack.program("flink", "sql-client.sh")
        return [
            f"SQL client: {client} gateway --endpoint {_gateway_url(settings)}",
            "In it, paste these lines, which contain the addresses of Kafka and the registry:",
            *(f"{statement};" for statement in _statements_before(settings)),
            *address_tables(stack, _text_of(programs), hidden=True).splitlines(),
            *(f"then all of {path}" for path in programs),
        ]

    def _wait_until_written(self, stack: Stack, job: JobLog | JobElsewhere) -> None:
        first = self.first_topic(stack.settings)

        with self._open_topics(stack.endpoints.kafka) as source:

            def written() -> bool:
                job.check()
                return source.is_written(first)

            self._wait(written, f"wrote nothing to {first}", job)

    def _wait(self, until: Callable[[], bool], otherwise: str, job: JobLog | JobElsewhere) -> None:
        if not wait_until(until, RUNNING_WITHIN_S, LOOK_EVERY_S):
            raise DemoError(
                f"Flink accepted the demo, but {otherwise} within {RUNNING_WITHIN_S:.0f} s."
                f" {job.hint}"
            )


@contextmanager
def _session(settings: Settings) -> Iterator[Gateway]:
    """Open a session on the gateway. If the user provides Flink, close the session at the end;
    otherwise it must stay open (see `Gateway`).

    Raises:
        DemoError: the gateway refused a request.
    """
    try:
        gateway = Gateway(_gateway_url(settings))
        try:
            yield gateway
        finally:
            if ELSEWHERE.address(settings):
                gateway.close()
    except Refused as refused:
        raise DemoError(f"Flink refused a request: {refused}") from refused


def _text_of(programs: Sequence[Path]) -> str:
    return "\n".join(path.read_text() for path in programs)


def statements_for(stack: Stack, *programs: Path) -> list[str]:
    """Return the statements of the script and of further programs, preceded by statements with this
    stack's addresses."""
    sql = _text_of(programs)
    if name := find_workload(stack.settings.workload).watermark_delay:
        sql = script.with_watermark_delay(sql, getattr(stack.settings, name))
    prefix = stack.internal_endpoints.kafka.topic_prefix
    own = script.with_options(sql, prefix, partial(_of_sink, FlinkSettings.of(stack.settings)))
    return [
        *_statements_before(stack.settings),
        *script.in_one_job(script.statements(address_tables(stack, sql) + own)),
    ]


def _of_sink(settings: FlinkSettings, topic: str) -> dict[str, str]:
    """Return the options of a table that writes to this topic."""
    exact = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": topic}
    given = {name: v for name, v in settings.properties.items() if name.startswith(OF_SINKS)}
    return {**(exact if settings.uses_transactions else {}), **given}


def _gateway_url(settings: Settings) -> str:
    here = f"http://{settings.reach_address}:{FlinkSettings.of(settings).flink_port}"
    return ELSEWHERE.address(settings) or here


def _statements_before(settings: Settings) -> Sequence[str]:
    """Return the statements to run first in the session of a Flink that the user provides."""
    if not ELSEWHERE.address(settings):
        return ()
    given = {
        name: value
        for name, value in FlinkSettings.of(settings).properties.items()
        if not name.startswith((OF_SINKS, OF_CLIENTS))
    }
    sets = (f"SET '{name}' = '{script.quoted(value)}'" for name, value in given.items())
    return (*ELSEWHERE.statements_before(), *sets)


def address_tables(stack: Stack, sql: str, *, hidden: bool = False) -> str:
    """Return statements, one per line, that create the script's templates of connection options
    (tables `at_…`) with the addresses of this stack, and with the properties of Kafka's clients. If
    they are executed first, the script's own templates have no effect. If `hidden` is true, secrets
    are left out."""
    kafka, registry = stack.internal_endpoints.kafka, stack.internal_endpoints.registry
    addresses = {"redpanda:9092": str(kafka), "http://redpanda:8081": registry}
    clients = _client_options(stack, hidden=hidden)
    tables = ""
    for name, options in re.findall(
        r"^CREATE TABLE IF NOT EXISTS (at_\w+) \(unused AS 1\) WITH \((.*?)^\);",
        sql,
        re.DOTALL | re.MULTILINE,
    ):
        own = {
            option: addresses.get(value, value)
            for option, value in re.findall(r"'([^']+)' = '([^']*)'", options)
        }
        where = script.in_sql({**own, **clients})
        tables += f"CREATE TABLE {name} (unused AS 1) WITH ({where});\n"
    return tables


def _client_options(stack: Stack, *, hidden: bool) -> dict[str, str]:
    """Return the options of all tables with properties of Kafka's clients."""
    settings = FlinkSettings.of(stack.settings)
    further = {
        f"{OF_CLIENTS}{name}": "…" if hidden else value.replace(CLIENT, SHADED)
        for name, value in stack.internal_endpoints.kafka.java_properties.items()
    }
    given = {name: v for name, v in settings.properties.items() if name.startswith(OF_CLIENTS)}
    return {**further, **(TRANSACTIONS if settings.uses_transactions else {}), **given}


ENGINE = Flink()
