"""Where partitions of Kafka begin and end, asked of the broker for all of them at once."""

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from racetrack.errors import RacetrackError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

ASK_EVERY_S = 0.05
Partition = tuple[str, int]  # topic, number


class NotTold(RacetrackError):
    """The broker refused, or told no offset in time; the message says only why."""


def ends(
    client: "Consumer", partitions: Collection[Partition], which: int, within_s: float
) -> dict[Partition, int]:
    """The offset at an end of each partition: OFFSET_BEGINNING or OFFSET_END. A consumer may ask
    without reading, for less than half of the CPU time that the admin client takes for the same.

    Raises:
        NotTold: see there.
    """
    from confluent_kafka import KafkaException, TopicPartition

    # Kafka's protocol has the two ends of a partition as the times -2 and -1, which is also how the
    # client numbers them.
    wanted = [TopicPartition(topic, number, which) for topic, number in partitions]
    give_up = time.monotonic() + within_s
    while True:
        try:
            left_s = max(0.0, give_up - time.monotonic())
            answers = client.offsets_for_times(wanted, timeout=left_s)
        except KafkaException as error:
            raise NotTold(str(error)) from error
        for answer in answers:
            if answer.error:
                raise NotTold(str(answer.error))
        told = {(answer.topic, answer.partition): answer.offset for answer in answers}
        # A negative number without an error is no answer; one has ended a sweep.
        if min(told.values()) >= 0:
            return told
        if time.monotonic() >= give_up:
            raise NotTold(f"it says {[told[each] for each in partitions]}")
        time.sleep(ASK_EVERY_S)
