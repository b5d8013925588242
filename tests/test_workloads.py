"""Tests that every workload has all that its contract requires."""

from typing import Any

import pytest

from loadgen.config import Reader
from loadgen.config import load as load_config
from racetrack import workloads
from racetrack.config import REPO, load
from racetrack.engines import all_engines
from racetrack.engines.contract import Engine
from racetrack.errors import UsageError
from racetrack.run.checks import needed_services
from racetrack.run.faults import parse, services_hit
from racetrack.workloads import side
from racetrack.workloads.contract import find_workload


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


WITHOUT_TABLES = [name for name in workloads.names() if not find_workload(name).tables]


@pytest.mark.parametrize("workload", WITHOUT_TABLES)
@pytest.mark.parametrize("engine", all_engines(), ids=lambda engine: engine.name)
def test_without_tables_there_is_no_database(engine: Engine, workload: str) -> None:
    settings = load({"WORKLOAD": workload})
    assert not {"mysql", "registry", "debezium"} & {*needed_services(engine, settings)}
    assert {"broker", "loadgen", *engine.services} <= {*needed_services(engine, settings)}
    with pytest.raises(UsageError, match="mysql"):
        services_hit(parse("pause:mysql@1s+1s"), engine, settings)
    assert generator_of(workload).database() is None
