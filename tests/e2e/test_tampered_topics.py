"""End-to-end tests of topics that others change during a run: deleted messages, messages of the
future, and new partitions. All tests share one broker."""

import json
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from racetrack.analysis.raw import rows_of
from racetrack.clock import now_ms
from racetrack.probes import broker
from racetrack.probes.base import CurvesFile
from racetrack.probes.refused_input import KafkaInput, future_message
from racetrack.results.folder import RunFolder
from racetrack.workloads.contract import find_workload
from tests.e2e.loadgen_stack import TOPIC, LoadgenStack
from tests.e2e.shared import WaitUntil

NAMED_WITHIN_S = 15.0
PARTITION = 2  # its messages are deleted


@pytest.fixture(scope="module")
def admin(loadgen: LoadgenStack) -> AdminClient:
    return AdminClient(loadgen.native.endpoints.kafka.librdkafka({"log_level": 2}))


@pytest.fixture(scope="module")
def deleted(loadgen: LoadgenStack, admin: AdminClient) -> int:
    """Publish some pageviews and delete those of one partition; return their number."""
    loadgen.rates(1_000)
    loadgen.watch(0.5)
    loadgen.pause()
    (done,) = admin.delete_records([TopicPartition(TOPIC, PARTITION, OFFSET_END)]).values()
    first: int = done.result(10).low_watermark
    assert first > 0
    return first


def test_start_offsets_that_changed_are_recorded(
    loadgen: LoadgenStack, deleted: int, tmp_path: Path, wait_until: WaitUntil
) -> None:
    folder = RunFolder.create(tmp_path, "none", "1000")
    curves = CurvesFile(folder)

    def found() -> list[dict[str, str]]:
        rows = rows_of(folder.path / "curves.csv", dict)
        return [row for row in rows if row["curve"] == "deleted"]

    probe = broker.EndOffsetsProbe(loadgen.broker, curves)
    probe.start()
    wait_until(found, "row of a start offset")
    probe.stop()
    curves.close()
    assert [(row["partition"], row["count"]) for row in found()] == [(str(PARTITION), str(deleted))]


def test_a_message_of_the_future_is_found(loadgen: LoadgenStack) -> None:
    kafka, due_ms = loadgen.native.endpoints.kafka, now_ms() + 3_600_000
    offset = loadgen.broker.end_offsets()[1]
    value = {"user_id": 1, "url": "/products/1", "channel": "social", "received_at": due_ms}
    producer = Producer(kafka.librdkafka())
    producer.produce(TOPIC, json.dumps(value), partition=1)
    assert producer.flush(10) == 0
    shop = find_workload("shop")
    found = future_message(due_ms, 3_600_000, shop, KafkaInput(kafka), {1: offset + 1})
    assert found and found.startswith(f"{TOPIC}/1 at offset {offset} is 3,600.0 s ahead")


def test_new_partitions_are_named(
    loadgen: LoadgenStack, admin: AdminClient, deleted: int, wait_until: WaitUntil
) -> None:
    kafka, there = loadgen.native.endpoints.kafka, loadgen.settings.events_partitions
    # The topic is watched as if it were one of CDC, whose deleted messages the probe notes.
    probe = broker.TopicsProbe(kafka, "a topic that does not exist yet", [TOPIC])
    probe.start()
    wait_until(lambda: probe.deleted == {TOPIC: deleted}, "first look of the probe")
    (done,) = admin.create_partitions([NewPartitions(TOPIC, there + 2)]).values()
    done.result(10)
    with pytest.raises(broker.NewPartitions, match=f"partitions {there}, {there + 1} "):
        wait_until(probe.check, "failure", within_s=NAMED_WITHIN_S)
    probe.stop()
