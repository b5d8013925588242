"""Tests of the addresses at which engines that run elsewhere reach this machine."""

import pytest

from racetrack.config import load
from racetrack.stack.elsewhere import why_out_of_reach
from racetrack.stack.native.stack import NativeStack

ANY = "0.0.0.0"  # noqa: S104
OPEN = {"BIND_ADDRESS": ANY, "KAFKA_ADVERTISED_ADDRESS": "race.example"}


@pytest.mark.parametrize(
    ("host", "settings", "is_reached"),
    [
        ("flink.example", {}, False),
        ("10.0.0.7", {"BIND_ADDRESS": ANY}, False),
        ("flink.example", OPEN, True),
        ("localhost", {}, True),
        ("127.0.0.2", {}, True),
        ("::1", {}, True),
    ],
)
def test_an_engine_on_another_machine_needs_an_address(
    host: str, settings: dict[str, str], is_reached: bool
) -> None:
    failure = why_out_of_reach("Flink", host, load(settings))
    assert (failure is None) is is_reached
    if failure:
        assert "KAFKA_ADVERTISED_ADDRESS: Flink would look for" in str(failure)
        assert "at 127.0.0.1. Set it to" in str(failure)


def test_engines_use_the_address_that_is_advertised() -> None:
    stack = NativeStack(load({"STACK_NAME": "addresses", **OPEN}))
    kafka, registry = stack.internal_endpoints.kafka, stack.internal_endpoints.registry
    assert str(stack.endpoints.kafka).startswith("127.0.0.1:")
    assert str(kafka) == f"race.example:{stack.settings.kafka_port}"
    assert registry == f"http://race.example:{stack.settings.schema_registry_port}"
