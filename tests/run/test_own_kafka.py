"""Tests of a run whose broker runs elsewhere: its services, and the options it refuses."""

from collections.abc import Mapping

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.config import load
from racetrack.engines import find_engine
from racetrack.errors import SetupError, UsageError
from racetrack.run import checks, faults
from racetrack.stack.contract import ServiceClock
from racetrack.stack.runtime import open_stack
from tests.run.fakes import FakeEngine, FakeStack

OUTSIDE = {"KAFKA_BOOTSTRAP_SERVERS": "a.example:9092", "KAFKA_TOPIC_PREFIX": "race-1."}


def stack(overrides: Mapping[str, str]) -> FakeStack:
    return FakeStack(load(overrides))


def test_a_broker_elsewhere_is_not_started_and_can_not_be_hit() -> None:
    assert "broker" in checks.services_of(FakeEngine(), load())
    assert "broker" not in checks.services_of(FakeEngine(), load(OUTSIDE))
    fault = faults.parse("pause:broker@1s+1s")
    with pytest.raises(UsageError, match="the broker runs elsewhere"):
        faults.services_hit(fault, FakeEngine(), load(OUTSIDE))
    with pytest.raises(UsageError, match="RUNTIME=native"):
        open_stack(load({**OUTSIDE, "RUNTIME": "compose"}), [], print)


@pytest.mark.parametrize("engine", ["mz", "storm", "apex"])
def test_engines_that_can_not_use_it_are_refused(engine: str) -> None:
    with pytest.raises(UsageError, match="can't use a Kafka that runs elsewhere"):
        checks.require_kafka_usable(find_engine(engine), load(OUTSIDE))
    checks.require_kafka_usable(find_engine(engine), load())


def test_the_reader_learns_that_the_broker_is_unknown_and_how_clocks_differ() -> None:
    own = stack(OUTSIDE)
    own.clocks = {"broker": ServiceClock("the broker", -3.26, 0.84)}
    elsewhere, clock = checks.caveats_of_elsewhere(find_engine("flink"), own.as_stack())
    assert "CPU and memory can't be measured from here, so they are blank" in elsewhere
    assert "the broker's clock is 3.3 ms behind this machine's, ± 0.8 ms" in clock
    assert len(checks.caveats_of_elsewhere(find_engine("dh"), own.as_stack())) == 1
    assert checks.caveats_of_elsewhere(find_engine("flink"), stack({}).as_stack()) == []


@pytest.mark.parametrize(("offset_ms", "uncertainty_ms"), [(-15.0, 6.0), (0.0, 21.0)])
def test_a_generator_whose_clock_is_off_is_refused(offset_ms: float, uncertainty_ms: float) -> None:
    far = stack({})
    checks.require_known_clock(find_engine("dh"), far.as_stack())
    far.clocks = {"loadgen": ServiceClock("the load generator", offset_ms, uncertainty_ms)}
    with pytest.raises(SetupError, match=r"the load generator stamps events.*chrony"):
        checks.require_known_clock(find_engine("dh"), far.as_stack())


def test_if_nothing_runs_elsewhere_there_is_nothing_to_check() -> None:
    result = CliRunner().invoke(cli.race, ["check"])
    assert result.exit_code == 2
    assert "KAFKA_BOOTSTRAP_SERVERS" in result.output and "POSTGRES_URL" in result.output
