"""End-to-end test that `race scale` finds the factor by which the calibration engine's capacity is
programmed to grow with its replicas."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shared import Door
from tests.some_engines import CALIBRATION

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

PER_S, EXPONENT = 2_000, 0.8
FACTOR = 2**EXPONENT


def test_the_programmed_factor_is_found_after_an_interruption(
    door: Callable[..., Door],
    nothing_left: Callable[[], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A busy machine does not matter at these rates.
    monkeypatch.setenv("NOISE_GATE", "false")
    monkeypatch.setenv("CAL_CAPACITY_PER_S", str(PER_S))
    monkeypatch.setenv("CAL_SCALING_EXPONENT", str(EXPONENT))
    first = door("race", "scale", CALIBRATION, *["--replicas", "1,2", "--quick", "--hold", "3000"])
    first.until("== run 2 of 4")
    first.signal(signal.SIGINT)
    assert first.wait() == 130, first.output
    nothing_left()
    resume = re.search(r"To go on later: \./race (scale --resume (\S+))", first.output)
    assert resume, first.output
    file = tmp_path / "scale.json"
    second = door("race", *resume[1].split(), "--json", str(file))
    assert second.wait(600) == 0, second.output
    assert "== run 1 of 3" in second.output
    nothing_left()
    document: dict[str, Any] = json.loads(file.read_text())
    one, two = document["figures"]
    assert one["capacity_per_s"] == pytest.approx(PER_S, rel=0.05)
    assert two["factor_low"] <= FACTOR <= two["factor_high"], two
    assert two["factor"] == pytest.approx(FACTOR, rel=0.05)
    assert (one["holds"], two["holds"]) == (False, True)
    assert "2 replicas hold 1.7" in second.output, second.output
    assert "2 replicas are the fewest tried that hold 3,000/s" in second.output, second.output
