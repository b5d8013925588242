"""Tests that every workload has all that its contract requires."""

import pytest

from loadgen.config import Reader
from loadgen.config import load as load_config
from loadgen.schedule import Schedule
from racetrack import workloads
from racetrack.config import REPO
from racetrack.engines import all_engines
from racetrack.run.checks import OPTIONAL_RATES
from racetrack.workloads import side
from racetrack.workloads.contract import find_workload

# Columns of progress views in every workload.
COUNTED = {"total", "max_received_at"}


@pytest.mark.parametrize("workload", workloads.names())
def test_a_workload_has_both_sides_and_all_of_its_sql(workload: str) -> None:
    assert callable(side(workload, "load").make)
    harness = find_workload(workload)
    assert harness.name == workload
    assert {file.stem for file in harness.sql.glob("*.sql")} == {v.name for v in harness.views}
    assert {harness.progress, harness.summary, *harness.tables} <= {v.name for v in harness.views}
    counted = harness.view(harness.progress)
    assert (counted.key, set(counted.columns)) == (("partition",), COUNTED | {"partition"})
    assert set(harness.view(harness.summary).columns) == COUNTED
    assert harness.topic.due_field
    assert harness.watched_table is None or harness.watched_table in harness.tables


@pytest.mark.parametrize("workload", workloads.names())
def test_what_it_uses_of_the_optional_rates_has_a_source(workload: str) -> None:
    env = {"WORKLOAD": workload, "MYSQL_PASSWORD": "x"}
    generator = side(workload, "load").make(load_config(env), Reader(env))
    sources = generator.sources(lambda: Schedule.starting(0, 0, 1))
    rates = {source.key for source in sources if source.optional}
    assert rates == set(find_workload(workload).rates) <= set(OPTIONAL_RATES)


@pytest.mark.parametrize("workload", workloads.names())
def test_containers_get_its_tables(workload: str) -> None:
    harness = find_workload(workload)
    found = (REPO / "racetrack" / "workloads" / workload / "tables.env").read_text()
    tables = ",".join(f"{harness.database}.{table}" for table in harness.tables)
    assert found.splitlines()[-1] == f"TABLES={tables}"


@pytest.mark.parametrize("workload", workloads.names())
def test_the_published_engines_have_a_script_for_it(workload: str) -> None:
    published = [engine for engine in all_engines() if engine.is_published]
    assert len(published) == 2
    assert all(workload in engine.scripts for engine in published)
