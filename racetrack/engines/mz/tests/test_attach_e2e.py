"""End-to-end tests of a Materialize that runs elsewhere: an experiment on the native stack, with
all of scripts/demo.sql. MZ_URL is the address of the tests' Materialize, which uses the stack's
broker and registry. A thread of the test gives it the pageviews."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import psutil
import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from jsonschema import Draft202012Validator

from racetrack.analysis import raw
from racetrack.config import REPO, Settings, load
from racetrack.engines.mz.tests.materialize import Materialize, running, running_materialize
from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres
from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

NothingLeft = Callable[[], None]
WRITE_EVERY_S = 0.1
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'racetrack%'"
SOURCE = "SELECT schemaname FROM pg_tables WHERE tablename = 'pageviews_json'"


class Bringing:
    """Copies the topic's pageviews to PostgreSQL, which Materialize's source would do by itself."""

    def __init__(self, postgres: Postgres, kafka: str) -> None:
        self._postgres, self._kafka = postgres, kafka
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._guarded)

    def __enter__(self) -> "Bringing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    def _guarded(self) -> None:
        try:
            with psycopg.connect(self._postgres.url, autocommit=True) as connection:
                while not self._stop.wait(WRITE_EVERY_S):
                    if found := connection.execute(SOURCE).fetchone():
                        self._bring(connection, str(found[0]))
        except Exception as failure:  # noqa: BLE001  # raised where the test looks
            self._failure = failure

    def _bring(self, connection: psycopg.Connection, schema: str) -> None:
        # Commit nothing: otherwise `close` would wait for a broker that ended with the run.
        settings = {"bootstrap.servers": self._kafka, "group.id": "bringing"}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        partitions = consumer.list_topics("pageviews", 10).topics["pageviews"].partitions
        consumer.assign([TopicPartition("pageviews", n, OFFSET_BEGINNING) for n in partitions])
        columns = "data, partition, message_offset"
        insert = f"INSERT INTO {schema}.pageviews_json ({columns}) VALUES (%s, %s, %s)"  # noqa: S608
        try:
            while not self._stop.is_set():
                rows = []
                for message in consumer.consume(5_000, WRITE_EVERY_S):
                    value = message.value()
                    assert value is not None, message.error()
                    rows.append((value.decode(), message.partition(), message.offset()))
                with connection.transaction():
                    connection.cursor().executemany(insert.encode(), rows)
        except psycopg.errors.UndefinedTable:
            return  # the run has dropped its schema
        finally:
            consumer.close()


@pytest.fixture(scope="module")
def materialize(postgres: Postgres) -> Iterator[Materialize]:
    settings = load()
    where = settings.reach_address
    outside = running(
        f"{where}:{settings.kafka_port}", f"http://{where}:{settings.schema_registry_port}"
    )
    with running_materialize(postgres, outside) as server:
        yield server


@pytest.fixture
def provided(materialize: Materialize, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all runs use the tests' Materialize."""
    monkeypatch.setenv("MZ_URL", materialize.url)


def schemas(postgres: Postgres) -> list[object]:
    return [row[0] for row in postgres.rows(SCHEMAS)]


@pytest.mark.usefixtures("provided")
def test_a_run_elsewhere_counts_all_and_samples_the_processes_that_are_named(
    door: Callable[..., Door],
    postgres: Postgres,
    settings: Settings,
    nothing_left: NothingLeft,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MZ_PID", str(postgres.pid))
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    monkeypatch.setenv("READS_PER_SECOND", "6")
    with Bringing(postgres, f"{settings.reach_address}:{settings.kafka_port}"):
        run = door("run_experiment.sh", "mz", "500", "3", "5", "1.0")
        run.until(r"will be dropped$")
        (schema,) = schemas(postgres)
        assert run.wait() == 0, run.output
    nothing_left()
    assert schemas(postgres) == []
    assert psutil.pid_exists(postgres.pid)
    folder = run_folder(run.output)
    record = read_run(folder)
    Draft202012Validator(json.loads((REPO / "docs/run.schema.json").read_text())).validate(record)
    assert (record["outcome"], record["runtime"]) == ("ok", "native")
    assert record["versions"]["materialize"] == "v0 (of the tests)"
    assert any("it ran at MZ_URL" in caveat for caveat in record["caveats"])
    results = record["results"]
    assert results["processed_pageviews"] == results["published_pageviews"] > 3_000
    # The test copies no rows from MySQL, so views that need items stay empty.
    (view,) = results["views"]
    assert view["name"] == "profile_views_enriched.received_at"
    assert view["lag_p99_ms"] is not None
    # The reader has its own connection, and uses the schema of this run.
    reads = {read["query"]: read for read in results["reads"]}
    profiles = reads["profile_views_enriched by owner_id"]
    assert profiles["answered"] > 0 and profiles["rows_max"] > 0 and profiles["age"], reads
    assert not any(read["errors"] for read in reads.values()), reads
    cost = results["processes"]["materialized"]
    assert len(results["top"]["materialized"]["cpu_pct"]["samples"]) == 5 and cost["cpu_s"] > 0
    assert 0.01 < cost["rss_max"]["gib"] < 2
    services = {path.stem for path in (folder / "stack").glob("*.log")}
    assert services == {"mysql", "broker", "registry", "debezium", "loadgen", "reader"}
    assert f"its objects are in the schema {schema}" in run.output
    for text in (run.output, json.dumps(record), (folder / "start.log").read_text()):
        assert PASSWORD not in text
    delays = raw.delays(folder, "mz")
    apart = [b.timestamp_ms - a.timestamp_ms for a, b in pairwise(delays)]
    assert sum(apart) / len(apart) == pytest.approx(1000, rel=0.1)  # once a second


@pytest.mark.usefixtures("provided")
def test_an_engine_whose_processes_nobody_named_has_no_cost_and_ctrl_c_drops_its_schema(
    door: Callable[..., Door],
    postgres: Postgres,
    settings: Settings,
    nothing_left: NothingLeft,
) -> None:
    with Bringing(postgres, f"{settings.reach_address}:{settings.kafka_port}"):
        run = door("run_experiment.sh", "mz", "500", "60", "5", "1.0")
        run.until(r"^\[4/6\]")
        assert len(schemas(postgres)) == 1
        run.signal(signal.SIGINT)
        assert run.wait() == 130, run.output
    nothing_left()
    assert schemas(postgres) == []
    folder = run_folder(run.output)
    record = read_run(folder)
    assert record["outcome"] == "interrupted by SIGINT"
    assert any("another machine" in caveat for caveat in record["caveats"])
    used = {line.split(",")[1] for line in (folder / "usage.csv").read_text().splitlines()[1:]}
    assert used <= {"broker", "loadgen", "mysql", "registry", "debezium"}  # none of the engine
