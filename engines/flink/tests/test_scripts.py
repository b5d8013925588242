"""scripts/demo.flink.sql, as far as it can be read without Flink: nothing is missing."""

import re

import pytest

from engines.flink import script
from racetrack.settings import REPO
from racetrack.workload import View
from workloads.shop.catalogue import VIEWS

SQL = (REPO / "scripts" / "demo.flink.sql").read_text()
STATEMENTS = script.statements(SQL)
TABLES = {
    found[1]: statement
    for statement in STATEMENTS
    if (found := re.match(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", statement))
}


def columns_of(table: str) -> set[str]:
    """The names of a table's columns, those of the table that it is like included."""
    text = TABLES[table]
    if like := re.search(r"\) LIKE (\w+)$", text):
        return columns_of(like[1])
    return {name.strip("`") for name in re.findall(r"^    ([`\w]+) [A-Z]+", text, re.MULTILINE)}


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_is_a_table_with_its_columns(view: View) -> None:
    assert set(view.columns) <= columns_of(view.name)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_view_is_written_to_the_topic_of_its_name(view: View) -> None:
    assert f"'topic' = 'flink.{view.name}'" in TABLES[view.name]
    assert re.search(rf"^INSERT INTO {view.name}\b", STATEMENTS[-1], re.MULTILINE)


def test_no_two_tables_write_to_one_topic() -> None:
    topics = script.own_topics(SQL)
    assert len(topics) == len(set(topics)) == len(VIEWS) + 1
    assert STATEMENTS[-1].count("INSERT INTO") == len(topics)


def test_addresses_stand_in_the_templates_only() -> None:
    holding = [name for name, text in TABLES.items() if "redpanda" in text]
    assert holding == ["at_kafka", "at_kafka_and_registry", "at_kafka_in_avro"]
    assert all("IF NOT EXISTS" in TABLES[name] for name in holding)


def test_it_sets_nothing_that_belongs_to_the_settings() -> None:
    assert [text for text in STATEMENTS if text.upper().startswith(("SET", "RESET"))] == []


def test_its_lines_end_no_statement_within_a_comment() -> None:
    """Flink's client looks for the end of a statement at the end of a line, comment or not."""
    assert [line for line in SQL.splitlines() if re.search(r"--.*;\s*$", line)] == []
