"""`./race status`: what is up, and exit code 1 if that is not all."""

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.stack import runtime
from racetrack.stack.contract import RunningStack
from tests.some_engines import EXAMPLE

SINCE = "2026-11-22T08:00:00Z"


def test_nothing_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "running_stack", lambda _: None)
    result = CliRunner().invoke(cli.race, ["status"])
    assert result.exit_code == 1
    assert "No stack is up. Start one with `./race up ENGINE`." in result.output


def test_what_ended_since_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    up = RunningStack("native", EXAMPLE, "shop", SINCE, ["broker", "mysql"], {"mysql": [70]})
    monkeypatch.setattr(runtime, "running_stack", lambda _: (None, up))
    result = CliRunner().invoke(cli.race, ["status"])
    assert result.exit_code == 1
    assert f"Up since {SINCE}, for {EXAMPLE} on shop:" in result.output
    assert "Ended since: broker." in result.output


def test_status_tells_processes_only_where_they_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    services = {"mysql": [70, 71], "broker": []}
    up = RunningStack("native", EXAMPLE, "shop", SINCE, list(services), services)
    monkeypatch.setattr(runtime, "running_stack", lambda _: (None, up))
    result = CliRunner().invoke(cli.race, ["status"])
    assert result.exit_code == 0
    assert "  mysql      pid 70, 71\n" in result.output
    assert "  broker     running\n" in result.output
