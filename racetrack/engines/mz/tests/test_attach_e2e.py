"""End-to-end test of a Materialize that runs elsewhere: an experiment on the native stack, with
the tests' Materialize and a script of only the progress views. A thread of the test fills them."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import psutil
import psycopg
import pytest

from racetrack.analysis import raw
from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.mz.tests.materialize import STAND_IN
from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.broker import TopicOffsets
from tests.e2e.shared import Door, run_folder
from tests.run_json import read_run

pytestmark = pytest.mark.e2e

SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'racetrack%'"
NothingLeft = Callable[[], None]
Run = Callable[..., Door]


@pytest.fixture
def run(
    materialize: str, door: Callable[..., Door], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Return a function that starts an experiment on the tests' Materialize."""
    monkeypatch.setenv("MZ_URL", materialize)
    script = tmp_path / "scripts" / "demo.sql"
    script.parent.mkdir()
    script.write_text(STAND_IN)
    program = (sys.executable, "-m", "racetrack.engines.mz.tests.front_door")
    return lambda *words: door(*program, str(script), *words)


def schemas(postgres: Postgres) -> list[object]:
    return [row[0] for row in postgres.rows(SCHEMAS)]


@contextmanager
def counting(postgres: Postgres, settings: Settings) -> Iterator[None]:
    """Write how many pageviews are published into the view of progress, as Materialize would."""
    kafka = KafkaEndpoint(f"{settings.reach_address}:{settings.kafka_port}")
    offsets, stop = TopicOffsets(kafka, "pageviews"), threading.Event()

    def write() -> None:
        while not stop.wait(0.1):
            for schema in schemas(postgres):
                with suppress(RacetrackError, psycopg.Error):  # while the run begins or ends
                    counts = enumerate(offsets.end_offsets(within_s=1.0))
                    rows = [f"({n}, {count}, {now_ms()})" for n, count in counts if count]
                    postgres.rows(
                        f"INSERT INTO {schema}.pageviews_progress VALUES {', '.join(rows)} ON"  # noqa: S608
                        " CONFLICT (partition) DO UPDATE SET total = excluded.total,"
                        " max_received_at = excluded.max_received_at"
                    )

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def test_a_run_elsewhere_counts_all_and_samples_the_processes_that_are_named(
    run: Run,
    postgres: Postgres,
    settings: Settings,
    nothing_left: NothingLeft,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MZ_PID", str(postgres.pid))
    with counting(postgres, settings):
        door = run("500", "3", "5", "1.0")
        door.until(r"will be dropped$")
        (schema,) = schemas(postgres)
        assert door.wait() == 0, door.output
    nothing_left()
    assert schemas(postgres) == []
    assert psutil.pid_exists(postgres.pid)
    folder = run_folder(door.output)
    record = read_run(folder)
    assert (record["outcome"], record["runtime"]) == ("ok", "native")
    assert record["versions"]["materialize"] == "v0 (of the tests)"
    assert any("it ran at MZ_URL" in caveat for caveat in record["caveats"])
    results = record["results"]
    assert results["processed_events"] == results["published_events"] > 3_000
    cost = results["processes"]["materialized"]
    assert len(results["top"]["materialized"]["cpu_pct"]["samples"]) == 5 and cost["cpu_s"] > 0
    assert 0.01 < cost["rss_max"]["gib"] < 2
    assert f"its objects are in the schema {schema}" in door.output
    for text in (door.output, json.dumps(record), (folder / "start.log").read_text()):
        assert PASSWORD not in text
    delays = raw.delays(folder, "mz")
    apart = [b.timestamp_ms - a.timestamp_ms for a, b in pairwise(delays)]
    assert sum(apart) / len(apart) == pytest.approx(1000, rel=0.1)  # once a second
