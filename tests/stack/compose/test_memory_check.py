"""Tests that too little memory is reported before anything starts."""

import pytest

from racetrack.errors import SetupError
from racetrack.stack.compose import preparation
from racetrack.units import BYTES_PER_GIB as GIB

NEEDED = {"mysql": "500m", "redpanda": "1G 300m", "generator": "8g 300m"}


def test_enough() -> None:
    preparation.require_memory(NEEDED, int(10.1 * GIB))


def test_too_little_names_who_needs_most() -> None:
    with pytest.raises(SetupError, match=r"10\.1 GiB \(generator 8\.3, .* 10\.0 GiB are "):
        preparation.require_memory(NEEDED, 10 * GIB)


def test_what_a_virtual_machine_has_is_called_so() -> None:
    preparation.require_memory(NEEDED, 11 * GIB, virtual=True)
    with pytest.raises(SetupError, match=r"2\.0 GiB are what Docker's virtual machine has\. Give"):
        preparation.require_memory(NEEDED, 2 * GIB, virtual=True)
