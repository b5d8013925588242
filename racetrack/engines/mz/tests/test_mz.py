"""Tests of Materialize's engine on a real PostgreSQL: psql, polling, the lines of SUBSCRIBE, its
own schema and how that is removed, and which processes belong to the engine."""

# ruff: noqa: S608  # queries are made of names that stand here

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import psutil
import psycopg
import pyarrow as pa
import pytest

from racetrack.analysis import raw
from racetrack.clock import now_ms
from racetrack.config import for_record, load
from racetrack.engines.contract import DemoError, NoSuchView, Progress, Summary
from racetrack.engines.mz import engine as mz
from racetrack.engines.mz.elsewhere import ELSEWHERE
from racetrack.engines.mz.tests.materialize import STAND_IN
from racetrack.engines.shared.pgwire import Server
from racetrack.engines.shared.tests.fakes import KAFKA, stack
from racetrack.engines.shared.tests.postgres import PASSWORD, Postgres
from racetrack.errors import RacetrackError, SetupError
from racetrack.probes.base import CurvesFile
from racetrack.probes.usage import usage_of
from racetrack.probes.views import DelayProbe
from racetrack.results.folder import RunFolder
from racetrack.run import checks
from racetrack.stack.contract import Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.workloads.contract import find_workload
from tests.ports import free_ports
from tests.relay import Relay
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

WITHIN_S = 10.0
REGISTRY = stack().internal_endpoints.registry


@dataclass(frozen=True)
class Demo:
    """The engine with a script that PostgreSQL supports, and a stack whose Materialize runs
    elsewhere."""

    engine: mz.Materialize
    stack: Stack
    postgres: Postgres
    script: Path

    def load(self) -> None:
        self.engine.load_demo(self.stack)

    def schemas(self) -> set[str]:
        found = self.postgres.rows("SELECT nspname FROM pg_namespace")
        return {str(row[0]) for row in found}


@pytest.fixture
def demo(materialize: str, postgres: Postgres, tmp_path: Path) -> Iterator[Demo]:
    script = tmp_path / "scripts" / "demo.sql"
    script.parent.mkdir()
    script.write_text(STAND_IN)
    found = Demo(mz.Materialize(script), stack(MZ_URL=materialize), postgres, script)
    yield found
    ELSEWHERE.remove(found.stack.settings, RUN_NAME)


# ---- Lines of a SUBSCRIBE ------------------------------------------------------------------------

# Lines of a real Materialize: mz_timestamp, progressed, diff, and the columns of the query.
FIRST = [
    "1774155907000\tt\t\\N\t\\N\t\\N\t\\N",
    "1774155907000\tf\t1\t0\t10\t1774155906900",
    "1774155907000\tf\t1\t1\t12\t1774155906950",
    "1774155907001\tt\t\\N\t\\N\t\\N\t\\N",
]


def taken(lines: list[str], changes: mz.Changes | None = None) -> list[tuple[int, ...]]:
    changes = changes or mz.Changes()
    return [
        (p.timestamp_ms, p.partition, p.total, p.max_received_at_ms)
        for now_ms, line in enumerate(lines)
        for p in mz.progress(changes.take(line.split("\t")), now_ms)
    ]


def test_progress_is_reported_when_its_time_is_complete() -> None:
    expected = [(3, 0, 10, 1774155906900), (3, 1, 12, 1774155906950)]
    assert taken(FIRST) == expected
    assert taken(FIRST[:3]) == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_changed_row_is_its_new_one_in_whichever_order_they_come(order: int) -> None:
    pair = [
        "1774155908000\tf\t-1\t1\t12\t1774155906950",
        "1774155908000\tf\t1\t1\t15\t1774155907950",
    ]
    changes = mz.Changes()
    taken(FIRST, changes)
    lines = [*pair[::order], "1774155909000\tt\t\\N\t\\N\t\\N\t\\N"]
    assert taken(lines, changes) == [(2, 1, 15, 1774155907950)]


def test_of_several_times_that_are_complete_at_once_the_newest_is_reported() -> None:
    rows = ["2000\tf\t1\t1\t30\t9", "2000\tf\t-1\t1\t20\t8", "1000\tf\t1\t1\t20\t8"]
    rows += ["3000\tf\t1\t1\t40\t9", "3000\tf\t-1\t1\t30\t9"]
    ends = [f"{at}\tt\t\\N\t\\N\t\\N\t\\N" for at in (3000, 3001)]
    assert taken(rows + ends) == [(5, 1, 30, 9), (6, 1, 40, 9)]


# ---- psql ----------------------------------------------------------------------------------------


def test_a_failing_statement_ends_the_script_and_is_shown_with_its_error(demo: Demo) -> None:
    demo.script.write_text(
        "CREATE TABLE before (a int);\n\nSELECT a\n  FROM not_there;\nSELECT 1/0;\n"
    )
    with pytest.raises(DemoError) as refused:
        demo.load()
    text = str(refused.value)
    assert 'psql:scripts/demo.sql:4: ERROR:  relation "not_there" does not exist' in text
    assert "STATEMENT:  SELECT a\n  FROM not_there;" in text
    assert "division by zero" not in text
    assert PASSWORD not in text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, f"{KAFKA} {REGISTRY}"),
        (
            {"MZ_KAFKA": "seen:1", "MZ_SCHEMA_REGISTRY_URL": "http://seen:2"},
            "seen:1 http://seen:2",
        ),
    ],
)
def test_the_demo_gets_the_stacks_addresses_unless_its_own_are_set(
    demo: Demo, materialize: str, given: dict[str, str], expected: str
) -> None:
    demo.script.write_text("SELECT :'kafka' || ' ' || :'registry' AS variables INTO variables;")
    demo.engine.load_demo(stack(MZ_URL=materialize, **given))
    assert demo.postgres.rows(f"SELECT variables FROM {RUN_NAME}.variables") == [(expected,)]


def test_a_password_is_in_no_command_line_and_in_no_record(demo: Demo) -> None:
    demo.script.write_text("SELECT pg_sleep(60);")
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(demo.load)
        sleeping = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
        wait_until(lambda: demo.postgres.rows(sleeping), "psql got in")
        (psql,) = [c for c in psutil.Process().children() if c.name() == "psql"]
        argv = psql.cmdline()
        psql.kill()
        with pytest.raises(DemoError, match="psql's exit code -9"):
            loading.result()
    assert Path(argv[0]).name == "psql" and "scripts/demo.sql" in argv
    assert PASSWORD not in " ".join(argv)
    assert PASSWORD not in json.dumps(for_record(demo.stack.settings))
    assert PASSWORD not in repr(Server.at(demo.postgres.url, "MZ_URL"))
    assert "connect_timeout=3" in Server.at(f"{demo.postgres.url}&connect_timeout=3", "").conninfo


# ---- A schema of its own, and its end ------------------------------------------------------------


def test_elsewhere_all_is_made_in_a_schema_of_its_own_and_only_that_is_dropped(demo: Demo) -> None:
    old = "racetrack_20260101_000000_1"
    demo.postgres.rows(f"CREATE SCHEMA {old}")
    demo.postgres.rows("CREATE SCHEMA racetrackers")
    before = demo.schemas()
    demo.load()
    assert demo.schemas() - before == {RUN_NAME}
    assert demo.postgres.rows("SELECT * FROM pg_tables WHERE schemaname = 'public'") == []
    assert demo.engine.versions(demo.stack) == {"materialize": "v0 (of the tests)"}
    own, other = demo.engine.remarks(demo.stack)
    assert RUN_NAME in own and PASSWORD not in own
    assert f"DROP SCHEMA {old} CASCADE" in other
    gone = stack(MZ_URL=demo.postgres.url.replace(f":{demo.postgres.port}/", ":1/"))
    (line,) = ELSEWHERE.remove(gone.settings, RUN_NAME)
    assert f"DROP SCHEMA {RUN_NAME} CASCADE" in line and PASSWORD not in line
    ELSEWHERE.remove(demo.stack.settings, RUN_NAME)
    assert demo.schemas() == before
    demo.postgres.rows(f"DROP SCHEMA {old}, racetrackers")


# ---- Before anything starts ----------------------------------------------------------------------


@pytest.mark.parametrize(("delay_ms", "is_accepted"), [(10, True), (30, False)])
def test_a_far_materialize_is_accepted_if_its_clock_is_known(
    postgres: Postgres, delay_ms: int, is_accepted: bool
) -> None:
    (port,) = free_ports(1)
    with Relay(port, postgres.port, delay_ms / 1000).running():
        url = postgres.url.replace(f":{postgres.port}/", f":{port}/")
        clock = ELSEWHERE.check(load({"MZ_URL": url})).clock
    assert clock and abs(clock.offset_ms) <= clock.uncertainty_ms
    assert delay_ms <= clock.uncertainty_ms < delay_ms + 8
    far = stack(load({"MZ_URL": url}), {"materialized": clock})
    if is_accepted:
        checks.require_known_clock(mz.Materialize(), far)
        assert str(clock) in checks.caveats_of_elsewhere(mz.Materialize(), far)[-1]
    else:
        with pytest.raises(SetupError, match=r"At most ± 20 ms are accepted"):
            checks.require_known_clock(mz.Materialize(), far)


# ---- Cost, and caveats -------------------------------------------------------------------------


def test_the_processes_are_those_that_were_named_and_their_descendants(postgres: Postgres) -> None:
    engine = mz.Materialize()
    assert engine.services_in(load({"MZ_URL": postgres.url})) == ()
    assert engine.services_in(load()) == ("materialized",)
    assert engine.processes(stack(MZ_URL=postgres.url)) == {}
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        pids = f"{postgres.pid},{sleeper.pid},{postgres.pid}"
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            (backend,) = connection.execute("SELECT pg_backend_pid()").fetchone() or ()
            found = engine.processes(stack(MZ_URL=postgres.url, MZ_PID=pids))["materialized"]
            assert found[0] == postgres.pid and {backend, sleeper.pid} <= set(found)
            assert len(found) == len(set(found)) > 3
            before = usage_of(found)
            connection.execute("SELECT count(*) FROM generate_series(1, 2000000)")
            after = usage_of(found)
        assert after.cpu_s > before.cpu_s
        assert after.rss_gib > 0.01
    finally:
        sleeper.kill()
        sleeper.wait()


# ---- Progress and delay --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("COPY (SELECT 1/(3-n) FROM generate_series(1, 5) AS n) TO STDOUT", "division"),
        ("COPY (SELECT 1) TO STDOUT", "ended a COPY that should never end"),
        ("SELECT 1", "COPY"),
    ],
)
def test_a_copy_that_is_refused_breaks_or_ends_is_reported(
    postgres: Postgres, statement: str, said: str
) -> None:
    with pytest.raises(RacetrackError, match=said):
        list(Server.at(postgres.url, "").copy(statement, threading.Event()))


def test_delay_and_progress_are_written_in_the_format_of_every_engine(
    demo: Demo, tmp_path: Path
) -> None:
    """Run the real engine on PostgreSQL, with a simulated SUBSCRIBE."""
    folder = RunFolder.create(tmp_path, "mz", "1")
    demo.load()
    rows = f"{RUN_NAME}.pageviews_progress"
    curves = CurvesFile(folder)
    probe = DelayProbe(demo.engine, demo.stack, folder, curves)
    probe.start()
    try:
        time.sleep(0.5)
        assert probe.newest is None  # no row before the first pageview
        received_ms = now_ms() - 250
        demo.postgres.rows(f"INSERT INTO {rows} VALUES (0, 5, {received_ms}), (1, 7, 1000)")
        assert probe.wait_until(lambda n: n.total == 12, WITHIN_S, probe.check)
        first = probe.newest
        demo.postgres.rows(f"UPDATE {rows} SET total = 9 WHERE partition = 1")
        assert probe.wait_until(lambda n: n.total == 14, WITHIN_S, probe.check)
    finally:
        probe.stop()
        curves.close()
    probe.check()
    assert first and first.max_received_at_ms == received_ms
    assert 250 <= first.dt_ms <= first.timestamp_ms - received_ms + 1
    assert {delay.total for delay in raw.delays(folder.path, "mz")} == {12, 14}
    curve = [row.split(",") for row in (folder.path / "curves.csv").read_text().splitlines()[1:]]
    assert [row[1:] for row in curve] == [
        ["processed", "0", "5"],
        ["processed", "1", "7"],
        ["processed", "1", "9"],
    ]


def test_tracer_rows_are_reported_when_they_change(demo: Demo) -> None:
    demo.load()
    (traced,) = [view for view in find_workload("shop").traced_views if view.is_time]
    owner, stop = traced.keys(demo.stack.settings)[2], threading.Event()
    found = demo.engine.seen(demo.stack, [traced], stop)
    rows = f"{RUN_NAME}.profile_views_enriched VALUES ({owner}, to_timestamp(1795000000.123))"
    demo.postgres.rows(f"INSERT INTO {rows}")
    seen = next(found)
    stop.set()
    assert (seen.view, seen.partition, seen.value) == (traced.name, 2, 1_795_000_000_123)


# ---- Views ---------------------------------------------------------------------------------------


def test_a_view_is_read_with_its_types(demo: Demo) -> None:
    demo.script.write_text("""
CREATE VIEW item_summary AS
SELECT 1::int AS item_id, 12.50::numeric AS revenue, 0.5::double precision AS rate, 'a' AS name,
    '2026-03-22 05:05:07.25+00'::timestamptz AS received_at, NULL::text AS email, true AS flag,
    '2026-03-22 05:05:07.25'::timestamp AS updated_at
UNION ALL
SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL;
CREATE MATERIALIZED VIEW nothing AS SELECT 1.5::numeric AS amount WHERE false;
""")
    demo.load()
    found = demo.engine.read_view(demo.stack, "item_summary").sort_by("item_id")
    empty = demo.engine.read_view(demo.stack, "nothing")
    with pytest.raises(NoSuchView):
        demo.engine.read_view(demo.stack, "pg_class")
    assert [found.schema.field(name).type for name in found.column_names] == [
        pa.int64(),
        pa.decimal128(38, 2),
        pa.float64(),
        pa.string(),
        pa.timestamp("us", tz="UTC"),
        pa.string(),
        pa.bool_(),
        pa.timestamp("us"),
    ]
    first, second = found.to_pylist()
    assert first["revenue"] == Decimal("12.50") and first["name"] == "a"
    assert first["received_at"].timestamp() == 1774155907.25
    assert set(second.values()) == {2, None}
    assert empty.num_rows == 0 and empty.column_names == ["amount"]


def test_progress_does_not_wait_for_a_slow_query(demo: Demo) -> None:
    """Materialize may delay a query's answer by a second, until its clock has advanced. Meanwhile
    the lines of SUBSCRIBE must be recorded as they come."""
    slow_clock = """CREATE FUNCTION mz_now() RETURNS bigint LANGUAGE sql AS
        $$ SELECT pg_sleep(2); SELECT mz_catalog.mz_now() $$;"""
    demo.script.write_text(STAND_IN.replace("HAVING sum(total) > 0", "") + slow_clock)
    stop = threading.Event()
    demo.load()
    updates = demo.engine.updates(demo.stack, stop)
    rows = f"{RUN_NAME}.pageviews_progress"
    demo.postgres.rows(f"INSERT INTO {rows} VALUES (0, 5, 1000)")
    began = time.monotonic()
    first = next(updates)
    assert time.monotonic() - began < 1.8
    second = next(updates)
    stop.set()
    assert isinstance(first, Progress) and isinstance(second, Summary)
