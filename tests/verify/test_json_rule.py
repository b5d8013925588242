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
    # What looks as usual would pass the whole examination.
    examined = fault_of(row.of(topic), replace(topic, usual="x^"))
    assert (fault is None) == (examined is None) == row.is_valid
    if fault:
        assert fault.field == row.field_in(topic)
        assert fault.reason
