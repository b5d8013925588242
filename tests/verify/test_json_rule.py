"""Tests of which JSON messages are valid, from one table: by the rule itself, and by the
verification, which examines only messages that look unusual."""

from dataclasses import replace

import pytest

from racetrack.workloads.contract import SourceTopic, find_workload
from racetrack.workloads.message import fault_of
from tests.json_messages import ROWS, Row

TOPICS = [find_workload(name).topic for name in ("shop", "ads")]


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_message_is_valid_only_if_all_parsers_read_it_alike(row: Row, topic: SourceTopic) -> None:
    fault = fault_of(row.of(topic), topic)
    if row.is_valid:
        assert fault is None
        return
    assert fault and fault.field == row.field_in(topic)
    assert fault.reason


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_what_looks_as_usual_passes_the_whole_examination(topic: SourceTopic) -> None:
    rows = [row.of(topic) for row in ROWS]
    strict = replace(topic, usual="x^")
    for value in rows:
        assert (fault_of(value, topic) is None) == (fault_of(value, strict) is None), value
