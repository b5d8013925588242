"""What had been offered when the load was paused, and what of it the broker has."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from racetrack.probes.broker import TopicOffsets
from racetrack.probes.loadgen import Control

PUBLISHED_WITHIN_S = 5.0


@dataclass(frozen=True)
class Settled:
    """Pageviews by partition, once nothing more is on its way from the generator to the broker."""

    since_s: float  # when the load was paused, of `time.monotonic`
    handed_over: Sequence[int]
    refused: Sequence[int]
    end_offsets: Sequence[int]  # other than `handed_over` if something was lost


def settle(control: Control, broker: TopicOffsets) -> Settled:
    """Wait until a generator that has just been paused has handed everything over, and for a few
    seconds until the broker has it.

    Raises:
        LoadgenError: the generator did not come to its end in time.
        OffsetsError: the broker does not answer.
    """
    since_s = time.monotonic()
    counts = control.settled_counts()
    handed_over = counts["handed"]
    end_offsets = broker.end_offsets_reaching(handed_over, PUBLISHED_WITHIN_S)
    return Settled(since_s, handed_over, counts["refused"], end_offsets)
