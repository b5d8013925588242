"""Tests that a connector that is paused or that nobody answers for ends the run with the reason."""

from typing import Any

import pytest

from racetrack.errors import RacetrackError
from racetrack.probes.base import no_outage
from racetrack.probes.cdc import ConnectorProbe
from tests.fake_server import JsonHandler, serving
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("state", "code", "says"), [("PAUSED", 200, "(?i)paused"), ("RUNNING", 503, "HTTP 503")]
)
def test_the_run_ends_with_the_reason(state: str, code: int, says: str) -> None:
    class Connect(JsonHandler):
        def get(self) -> None:
            assert self.path == "/connectors/shop/status"
            tasks: list[dict[str, Any]] = [{"id": 0, "state": "RUNNING", "trace": ""}]
            self.answer({"connector": {"state": state}, "tasks": tasks}, code)

    with serving(Connect) as url:
        probe = ConnectorProbe(url, "shop", no_outage, silent_for_s=0.1, every_s=0.01)
        probe.start()
        with pytest.raises(RacetrackError, match=says):
            wait_until(probe.check, "failure", 10)
        probe.stop()
