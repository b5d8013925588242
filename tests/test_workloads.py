"""Tests that every workload has all that its contract requires."""

from typing import Any

import pytest

from loadgen.config import Reader
from loadgen.config import load as load_config
from loadgen.schedule import Schedule
from racetrack import workloads
from racetrack.config import REPO, load
from racetrack.engines import all_engines
from racetrack.engines.contract import Engine
from racetrack.errors import UsageError
from racetrack.run.checks import OPTIONAL_RATES, needed_services
from racetrack.run.faults import parse, services_hit
from racetrack.stack.applicability import why_without_effect
from racetrack.workloads import side
from racetrack.workloads.contract import find_workload

# Columns of progress views in every workload.
COUNTED = {"total", "max_received_at"}


def generator_of(workload: str) -> Any:
    env = {"WORKLOAD": workload}
    return side(workload, "load").make(load_config(env), Reader(env))


@pytest.mark.parametrize("workload", workloads.names())
def test_a_workload_has_all_of_its_sql_and_its_tables(workload: str) -> None:
    harness = find_workload(workload)
    assert harness.name == workload
    assert {file.stem for file in harness.sql.glob("*.sql")} == {v.name for v in harness.views}
    assert {*harness.tables} <= {view.name for view in harness.views}
    assert harness.topic.due_field
    assert harness.watched_table is None or harness.watched_table in harness.tables
    for_containers = (REPO / "racetrack" / "workloads" / workload / "tables.env").read_text()
    tables = ",".join(f"{harness.database}.{table}" for table in harness.tables)
    assert for_containers.splitlines()[-1] == f"TABLES={tables}"


@pytest.mark.parametrize("workload", workloads.names())
def test_views_count_the_main_topic_or_tracer_rows_show_the_progress(workload: str) -> None:
    harness, generator = find_workload(workload), generator_of(workload)
    assert generator.positions == harness.positions
    if harness.positions:
        assert (harness.progress, harness.summary) == ("", "")
        assert harness.traced_views
        assert harness.positions in {topic.name for topic in generator.topics}
        return
    counted = harness.view(harness.progress)
    assert (counted.key, set(counted.columns)) == (("partition",), COUNTED | {"partition"})
    assert set(harness.view(harness.summary).columns) == COUNTED


@pytest.mark.parametrize("workload", workloads.names())
def test_what_it_uses_of_the_optional_rates_has_a_source(workload: str) -> None:
    generator = generator_of(workload)
    sources = generator.sources(lambda: Schedule.starting(0, 0, 1))
    rates = {source.key for source in sources if source.optional}
    assert rates == set(find_workload(workload).rates) <= set(OPTIONAL_RATES)


WITH_TABLES = [name for name in workloads.names() if find_workload(name).tables]
WITHOUT_TABLES = [name for name in workloads.names() if not find_workload(name).tables]


@pytest.mark.parametrize("workload", WITH_TABLES)
def test_the_published_engines_have_a_script_for_it(workload: str) -> None:
    published = [engine for engine in all_engines() if engine.is_published]
    assert len(published) == 2
    assert all(workload in engine.scripts for engine in published)


@pytest.mark.parametrize("workload", WITHOUT_TABLES)
@pytest.mark.parametrize("engine", all_engines(), ids=lambda engine: engine.name)
def test_without_tables_there_is_no_database(engine: Engine, workload: str) -> None:
    settings = load({"WORKLOAD": workload})
    assert not {"mysql", "registry", "debezium"} & {*needed_services(engine, settings)}
    assert {"broker", "loadgen", *engine.services} <= {*needed_services(engine, settings)}
    with pytest.raises(UsageError, match="mysql"):
        services_hit(parse("pause:mysql@1s+1s"), engine, settings)
    assert generator_of(workload).database() is None


@pytest.mark.parametrize(
    ("setting", "workload", "has_effect"),
    [
        ("PURCHASES_PER_SECOND_START", "shop", True),
        ("PURCHASES_PER_SECOND_START", "nexmark", False),
        ("KAFKA_HEAP", "nexmark", True),
        ("NEXMARK_QUERIES", "shop", False),
    ],
)
def test_settings_of_what_a_workload_lacks_have_no_effect(
    setting: str, workload: str, has_effect: bool
) -> None:
    assert (why_without_effect(setting, workload) == "") is has_effect
