"""Too little memory is told before anything starts."""

from types import SimpleNamespace

import psutil
import pytest

from racetrack.errors import SetupError
from racetrack.settings import load
from racetrack.stack.compose import room

SERVICES = ("mysql", "redpanda", "debezium", "loadgen", "deephaven")


def available(monkeypatch: pytest.MonkeyPatch, gib: float) -> None:
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: SimpleNamespace(available=int(gib * room.GIB))
    )


def test_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    available(monkeypatch, 8)
    room.require(load({"DEEPHAVEN_HEAP": "4g"}), SERVICES)


def test_too_little_names_who_needs_most_and_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    available(monkeypatch, 8)
    with pytest.raises(SetupError, match=r"\(deephaven 8\.3, .* 8\.0 GiB are .*DEEPHAVEN_HEAP"):
        room.require(load({"DEEPHAVEN_HEAP": "8g"}), SERVICES)


def test_every_knob_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    available(monkeypatch, 7.5)
    room.require(load(), SERVICES)
    for knob in ("REDPANDA_MEMORY", "CONNECT_HEAP"):
        with pytest.raises(SetupError):
            room.require(load({knob: "4g"}), SERVICES)
    with pytest.raises(SetupError):
        room.require(load({"KAFKA_HEAP": "4g", "AIRGAP": "true"}), SERVICES)
