"""End-to-end tests of messages that look unusual: engines read valid ones alike, and are not blamed
for others."""

from confluent_kafka import Producer

from racetrack.config import load
from racetrack.results import folder as runfolder
from racetrack.results.verification import Verified, ViewStatus
from racetrack.stack import net
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door
from tests.json_messages import INVALID, VALID, Row
from tests.some_engines import EXAMPLE

WORKLOAD = "ads"  # without views of the last minutes
# Parsers that no other test calls directly.
ENGINES = "dh,flink"
# Engines survive these; some read the first as another time.
SURVIVED = {
    "minus zero",
    "also a name in capitals",
    "additional object",
    "repeated additional name",
}


def verified(engines: str, rows: list[Row]) -> tuple[list[Verified], str]:
    """Run engines, send them these messages, and return what verification found, and the output."""
    options = ["--rate", "500", "--settle", "20s", "--samples", "3", "--decide-within", "0"]
    door = Door("race", "run", engines, *options, "--verify", "--workload", WORKLOAD)
    door.until(r"^\[4/")
    topic = find_workload(WORKLOAD).topic
    producer = Producer(net.kafka(load()).librdkafka())
    for number, row in enumerate(rows):
        producer.produce(topic.name, row.of(topic), partition=number % 2)
    assert producer.flush(10) == 0
    assert door.wait() == 1, door.output  # there are more messages than the generator sent
    folder = door.folder
    names = engines.split(",")
    folders = [folder / name for name in names] if len(names) > 1 else [folder]
    found = [runfolder.read_run(of).verified for of in folders]
    return [of for of in found if of], door.output


def test_valid_messages_leave_all_views_right() -> None:
    found, output = verified(ENGINES, list(VALID))
    assert len(found) == len(ENGINES.split(",")), output
    for of in found:
        assert {view.status for view in of.views.values()} == {ViewStatus.RIGHT}, output
        assert of.unfit == {}
        assert of.source_rows["ad_events"] == sum(of.end_offsets)


def test_an_engine_is_not_blamed_for_messages_that_parsers_read_differently() -> None:
    rows = [row for row in INVALID if row.name in SURVIVED]
    (found,), output = verified(EXAMPLE, rows)
    topic = find_workload(WORKLOAD).topic.name
    assert found.unfit[topic].count == len(rows) == len(SURVIVED)
    assert all("offset" in message for message in found.unfit[topic].first)
    assert not found.named(ViewStatus.WRONG)
    assert found.views["ad_events_progress"].status is ViewStatus.NOT_COMPARED
    assert f"Messages are unfit: {topic} ({len(rows)})" in output
