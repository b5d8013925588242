"""Test that the memory suffices, before a start of containers."""

from contextlib import nullcontext

import pytest

from racetrack.errors import SetupError
from racetrack.stack.compose import preparation
from racetrack.units import BYTES_PER_GIB as GIB


@pytest.mark.parametrize(
    ("gib", "virtual", "reason"),
    [
        (10.1, False, ""),
        (10, False, r"10\.1 GiB \(generator 8\.3, .* 10\.0 GiB are "),  # who needs most, first
        (2, True, r"2\.0 GiB are what Docker's virtual machine has\. Give"),
    ],
)
def test_too_little_memory_is_refused(gib: float, virtual: bool, reason: str) -> None:
    needed = {"mysql": "500m", "redpanda": "1G 300m", "generator": "8g 300m"}
    with pytest.raises(SetupError, match=reason) if reason else nullcontext():
        preparation.require_memory(needed, int(gib * GIB), virtual=virtual)
