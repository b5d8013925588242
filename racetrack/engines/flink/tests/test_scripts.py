"""Tests, without Flink, that nothing is missing in Flink's scripts of the workloads."""

import re

import pytest

from racetrack.config import Settings, load
from racetrack.engines import find_engine
from racetrack.engines.flink import script
from racetrack.workloads.contract import View, find_workload

FLINK = find_engine("flink")


def settings_of(workload: str) -> Settings:
    """Return settings with all views of a workload selected."""
    harness = find_workload(workload)
    selected = {harness.selected_by.upper(): ",".join(harness.selectable)}
    return load({"WORKLOAD": workload, **(selected if harness.selected_by else {})})


# All programs of each workload.
SQL = {
    workload: "\n".join(path.read_text() for path in FLINK.programs(settings_of(workload)))
    for workload in FLINK.scripts
}
STATEMENTS = {workload: script.in_one_job(script.statements(sql)) for workload, sql in SQL.items()}
TABLES = {
    (workload, found[1]): statement
    for workload, statements in STATEMENTS.items()
    for statement in statements
    if (found := re.match(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", statement))
}
VIEWS = [(workload, view) for workload in SQL for view in find_workload(workload).views]
EVERY_VIEW = pytest.mark.parametrize(
    ("workload", "view"), VIEWS, ids=[f"{workload} {view.name}" for workload, view in VIEWS]
)


def columns_of(workload: str, table: str) -> set[str]:
    """Return the names of a table's columns, including those that it takes over by LIKE."""
    text = TABLES[workload, table]
    if like := re.search(r"\) LIKE (\w+)$", text):
        return columns_of(workload, like[1])
    return {name.strip("`") for name in re.findall(r"^    ([`\w]+) [A-Z]+", text, re.MULTILINE)}


@EVERY_VIEW
def test_every_view_is_a_table_with_its_columns_key_and_topic(workload: str, view: View) -> None:
    text = TABLES[workload, view.name]
    assert set(view.columns) <= columns_of(workload, view.name)
    assert f"'topic' = 'flink.{view.name}'" in text
    assert re.search(rf"^INSERT INTO {view.name}\b", STATEMENTS[workload][-1], re.MULTILINE)
    has_key = view.key and set(view.key) != {*view.columns} - {view.between}
    if (key := re.search(r"PRIMARY KEY \((.*?)\)", text)) and has_key:
        assert tuple(key[1].replace("`", "").split(", ")) == view.key


def test_the_rows_of_a_view_are_only_appended_if_its_table_has_no_key() -> None:
    sql = SQL["nexmark"]
    appended = {topic.removeprefix("flink.") for topic in script.appended_topics(sql)}
    assert appended == {"q0", "q1", "q2", "q3", "q5", "q7", "q8", "q20", "q22"}
    assert not any("PRIMARY KEY" in TABLES["nexmark", name] for name in appended)
    assert not script.appended_topics(SQL["shop"]) + script.appended_topics(SQL["ads"])
