"""Tests of the settings of a capacity search."""

import psutil
import pytest

from racetrack.config import load
from racetrack.run import loads


def test_a_search_does_not_fill_the_memory_with_what_engines_have_read() -> None:
    memory = psutil.virtual_memory().total
    settings = loads.settings_for(load({"KAFKA_RETENTION_BYTES": "-1"}))
    kept = settings.kafka_retention_bytes * settings.pageviews_partitions
    assert kept == pytest.approx(memory / 6, rel=0.01)
    bounded = load({"KAFKA_RETENTION_BYTES": "5000000"})
    assert loads.settings_for(bounded).kafka_retention_bytes == 5_000_000
