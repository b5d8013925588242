"""A Flink that the user provides, reached through its SQL gateway at FLINK_GATEWAY_URL.

The job there is named RUN_NAME; it is found by this name and cancelled at the end of the run. Its
tables exist only in a session of the gateway.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from racetrack.clock import wait_until
from racetrack.config import Settings
from racetrack.engines.flink.gateway import Gateway, Refused, opened
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.stack.elsewhere import RUN_NAME, Failure, Passed, refused, why_out_of_reach

# Statuses of a job that will not run again.
ENDED = frozenset(("FAILED", "CANCELED", "FINISHED"))
ENDED_WITHIN_S = 20.0
# When a run is interrupted or killed, the gateway may continue to plan the run's statements for
# this long, and submit the job only then.
SUBMITTED_WITHIN_S = 40.0
ANSWER_WITHIN_S = 8.0
LOOK_EVERY_S = 0.2
NO_JOB = (
    f"found no job named {{name}} at {{url}} within {SUBMITTED_WITHIN_S:.0f} s. If it comes later,"
    " cancel it"
)
# Use the catalog that each session has in memory: in other catalogs, tables may outlive the
# session.
IN_MEMORY = "USE CATALOG default_catalog"
UNREACHABLE = "Check the address, and that the SQL gateway runs there"
NO_SESSION_CLUSTER = (
    "Set execution.target to remote in the gateway's configuration, and rest.address to that of a"
    " running session cluster"
)
NO_CONNECTOR = (
    "Put the jars flink-sql-connector-kafka and flink-sql-avro-confluent-registry into the folder"
    " lib of the gateway and of the cluster"
)
# Planning a query on this table shows whether its connector and formats are installed. Nothing is
# connected to.
PLANNED = (
    IN_MEMORY,
    """
CREATE TEMPORARY TABLE racetrack_check (number BIGINT, PRIMARY KEY (number) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'none', 'properties.bootstrap.servers' = 'none:1',
    'key.format' = 'json', 'value.format' = 'avro-confluent',
    'value.avro-confluent.url' = 'http://none:1')""",
    "EXPLAIN SELECT * FROM racetrack_check",
)


class _Flink:
    """See `racetrack.stack.elsewhere.Elsewhere`."""

    service, title, setting, starts_here = "flink", "Flink", "FLINK_GATEWAY_URL", False

    def __init__(self) -> None:
        self._is_submitting = False

    def address(self, settings: Settings) -> str:
        return FlinkSettings.of(settings).flink_gateway_url

    def check(self, settings: Settings) -> Passed:
        """Open a session, list the jobs of its cluster, and plan a query on a table over a
        topic."""
        url = self.address(settings)
        passed: list[str] = []

        def step(what: str, remedy: str, do: Callable[[], object]) -> None:
            try:
                do()
            except Refused as refusal:
                answer = f"can't {what}: {' '.join(str(refusal).split())}"
                raise refused(self.title, url, [Failure(self.setting, answer, remedy)]) from None
            passed.append(what)

        step("open a session", UNREACHABLE, lambda: Gateway(url, ANSWER_WITHIN_S).close())
        with opened(url, ANSWER_WITHIN_S) as gateway:
            step("list jobs", NO_SESSION_CLUSTER, gateway.jobs)
            step("find the connectors", NO_CONNECTOR, lambda: [*map(gateway.run, PLANNED)])
        if failure := why_out_of_reach(self.title, urlsplit(url).hostname or "", settings):
            raise refused(self.title, url, [failure])
        return Passed(tuple(passed))

    def statements_before(self) -> Sequence[str]:
        """Return statements to run before the script. They give the job its name."""
        return (IN_MEMORY, f"SET 'pipeline.name' = '{RUN_NAME}'")

    @contextmanager
    def submission(self) -> Iterator[None]:
        """Mark the time in which the gateway may submit the job. If the user interrupts the run in
        this time, the gateway may still submit the job later, so `remove` then waits for the job.
        """
        self._is_submitting = True
        try:
            yield
        except Exception:
            self._is_submitting = False
            raise
        self._is_submitting = False

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:
        """Cancel the jobs named `run_name`."""
        if not run_name:
            return ()
        url = self.address(settings)
        # Or it is a killed run of another process.
        may_come = self._is_submitting or run_name != RUN_NAME
        self._is_submitting = False
        try:
            with opened(url, ENDED_WITHIN_S) as gateway:
                if may_come and not wait_until(
                    lambda: bool(_live(gateway, run_name)), SUBMITTED_WITHIN_S, LOOK_EVERY_S
                ):
                    return [NO_JOB.format(name=run_name, url=url)]
                jobs = _live(gateway, run_name)
                for job in jobs:
                    gateway.run(f"STOP JOB '{job}'")
                if not wait_until(
                    lambda: not _live(gateway, run_name), ENDED_WITHIN_S, LOOK_EVERY_S
                ):
                    raise Refused(f"they still run after {ENDED_WITHIN_S:.0f} s")
        except Refused as refusal:
            remedy = "Cancel them yourself, in Flink's web page or with `flink cancel`."
            return [f"jobs named {run_name} were not cancelled at {url}: {refusal}. {remedy}"]
        return [f"cancelled {', '.join(jobs)} at {url}"] if jobs else []

    def remarks(self, settings: Settings) -> list[str]:
        """Return a line for the user: which job will be cancelled at the end."""
        return [f"its job {RUN_NAME} at {self.address(settings)} will be cancelled at the end"]

    def why_not_running(self, settings: Settings, run_name: str) -> str:
        """Return why the last job of this name is not running; empty if it is running."""
        try:
            with opened(self.address(settings), ENDED_WITHIN_S) as gateway:
                jobs = [job for job in gateway.jobs() if job.name == run_name]
        except Refused as refusal:
            return str(refusal)
        if not jobs:
            return f"there is no job named {run_name}"
        last = max(jobs, key=lambda job: job.began_at)
        return f"{last.id} is {last.status}" if last.status in ENDED else ""


def _live(gateway: Gateway, name: str) -> list[str]:
    """Return the ids of jobs of this name that have not ended."""
    return [job.id for job in gateway.jobs() if job.name == name and job.status not in ENDED]


ELSEWHERE = _Flink()
