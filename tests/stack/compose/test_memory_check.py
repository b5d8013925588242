"""Too little memory is told before anything starts."""

from types import SimpleNamespace

import psutil
import pytest

from racetrack.errors import SetupError
from racetrack.stack.compose import preparation

NEEDED = {"mysql": "500m", "redpanda": "1G 300m", "generator": "8g 300m"}


def available(monkeypatch: pytest.MonkeyPatch, gib: float) -> None:
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: SimpleNamespace(available=int(gib * preparation.GIB))
    )


def test_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    available(monkeypatch, 10.1)
    preparation.require_memory(NEEDED)


def test_too_little_names_who_needs_most(monkeypatch: pytest.MonkeyPatch) -> None:
    available(monkeypatch, 10)
    with pytest.raises(SetupError, match=r"10\.1 GiB \(generator 8\.3, .* 10\.0 GiB are "):
        preparation.require_memory(NEEDED)


def test_what_a_virtual_machine_has_counts_for_what_runs_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    available(monkeypatch, 100)
    preparation.require_memory(NEEDED, 11 * preparation.GIB)
    with pytest.raises(SetupError, match=r"2\.0 GiB are what Docker's virtual machine has\. Give"):
        preparation.require_memory(NEEDED, 2 * preparation.GIB)
