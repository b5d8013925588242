"""The stack to play with where Docker runs in a virtual machine: on a Mac, of which only what
Python says of the machine is made up. The containers are real; nobody looks for their processes."""

import platform
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from racetrack import cli
from racetrack.config import Settings
from racetrack.engines import example_engine
from racetrack.stack.compose.containers import CGroup
from racetrack.stack.contract import Stack
from racetrack.stack.runtime import running_stack
from tests.e2e.shared import nc

pytestmark = pytest.mark.e2e

ENGINE = example_engine()
SERVICES = ("mysql", "broker", "debezium", *ENGINE.services, "loadgen")
DARWIN = "24.6.0"


def race(*arguments: str) -> Result:
    return CliRunner().invoke(cli.race, arguments)


@pytest.fixture(scope="module")
def mac(contained: Settings) -> Iterator[None]:
    """Nobody may look for processes of containers: their numbers are those of others there."""

    def refuse(*_: object) -> None:
        raise AssertionError("there are no control groups on a Mac")

    with pytest.MonkeyPatch.context() as found:
        found.setattr(platform, "system", lambda: "Darwin")
        found.setattr(platform, "release", lambda: DARWIN)
        found.setattr(CGroup, "of", refuse)
        found.setenv("RUNTIME", "auto")
        yield


@pytest.fixture(scope="module")
def up(mac: None) -> Iterator[str]:
    """What `./race up` said; all tests of this file play with that stack."""
    try:
        result = race("up", ENGINE.name)
        assert result.exit_code == 0, result.output
        yield result.output
    finally:
        down = race("down")
        assert down.exit_code == 0, down.output


@pytest.fixture(scope="module")
def stack(up: str, contained: Settings) -> Stack:
    standing = running_stack(contained)
    assert standing
    return standing[0]


def test_it_reports_what_can_not_be_measured(up: str, stack: Stack) -> None:
    assert "Runtime compose: Docker " in up
    assert all(hint in up for hint in ENGINE.usage_hints(stack))
    assert f"Docker's containers run in a virtual machine ({platform.node()}, " in up
    assert f"; the kernel here is {DARWIN})" in up
    assert "CPU and memory can't be measured, and `./run_experiment.sh` refuses." in up


def test_status_reports_what_runs_without_numbers_of_processes(up: str) -> None:
    status = race("status")
    assert status.exit_code == 0, status.output
    for service in SERVICES:
        assert f"  {service:<10} running\n" in status.output
    assert "pid" not in status.output


def test_experiments_are_refused_with_the_reason(up: str) -> None:
    typed = f"run {ENGINE.name} --rate 1k --settle 1 --samples 1"
    refused = CliRunner().invoke(cli.race, typed.split())
    assert refused.exit_code == 3
    assert "virtual machine" in refused.output
    assert "nothing has been started. Run Racetrack on a Linux machine" in refused.output
    assert "RUNTIME=native" not in refused.output


def test_the_load_can_be_changed(up: str, contained: Settings) -> None:
    assert "200" in nc(contained, "set pageviews_per_second 200")[1]


def test_every_view_is_right(stack: Stack) -> None:
    ENGINE.load_demo(stack)
    verified = race("verify")
    assert verified.exit_code == 0, verified.output
    assert "every view is right" in verified.output
