"""End-to-end test of two engines on one input with messages that look unusual: each has a result,
and they read valid messages alike."""

from confluent_kafka import Producer

from racetrack.config import load
from racetrack.results import folder as runfolder
from racetrack.results.verification import ViewStatus
from racetrack.stack import net
from racetrack.workloads.contract import find_workload
from tests.e2e.shared import Door
from tests.json_messages import VALID

WORKLOAD = "ads"  # without views of the last minutes
# Parsers that no other test calls directly.
ENGINES = "dh,flink"


def test_valid_messages_leave_all_views_of_both_engines_right() -> None:
    options = ["--rate", "500", "--settle", "20s", "--samples", "3", "--decide-within", "0"]
    door = Door("race", "run", ENGINES, *options, "--verify", "--workload", WORKLOAD)
    door.until(r"^\[4/")
    topic = find_workload(WORKLOAD).topic
    producer = Producer(net.kafka(load()).librdkafka())
    for number, row in enumerate(VALID):
        producer.produce(topic.name, row.of(topic), partition=number % 2)
    assert producer.flush(10) == 0
    assert door.wait() == 1, door.output  # there are more messages than the generator sent
    assert door.folder.name.endswith(f"_UTC_{ENGINES.replace(',', '+')}_500")
    for name in ENGINES.split(","):
        run = runfolder.read_run(door.folder / name)
        assert run.results and run.results.engine and run.results.engine.cpu_s > 0, door.output
        found = run.verified
        assert found, door.output
        assert {view.status for view in found.views.values()} == {ViewStatus.RIGHT}, door.output
        assert found.unfit == {}
        assert found.source_rows["ad_events"] == sum(found.end_offsets)
