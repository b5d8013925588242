"""End-to-end test of Flink's client in its container."""

import subprocess
from collections.abc import Callable

import pytest

from racetrack.config import Settings
from racetrack.engines.flink.settings import FlinkSettings
from tests.e2e.shared import Door

pytestmark = pytest.mark.e2e


def test_its_own_client_is_in_its_container(contained: Settings, door: Callable[..., Door]) -> None:
    """Use the command that `./race up` prints: a client in the service's container."""
    up = door("race", "up", "flink")
    assert up.wait(400) == 0, up.output
    try:
        client = up.until("^SQL client: docker compose ")
        assert client.endswith(
            f"gateway --endpoint http://127.0.0.1:{FlinkSettings.of(contained).flink_port}"
        )
        argv = client.removeprefix("SQL client: ").split()
        argv.insert(argv.index("exec") + 1, "--no-TTY")
        shown = subprocess.run(
            argv, input="SHOW CATALOGS;\n", capture_output=True, text=True, timeout=60, check=False
        )
        assert "default_catalog" in shown.stdout, shown.stdout + shown.stderr
    finally:
        down = door("race", "down")
        assert down.wait() == 0, down.output
