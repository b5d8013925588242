"""Tests of Deephaven as a native service: readiness, and the addresses of its peers."""

import pytest

from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.stack.service import Context, NotReady, find_service
from tests.stack.conftest import Answer, answer, context, http, settings
from tests.stack.services.test_peers import inside

__all__ = ["answer", "context", "inside", "settings"]  # fixtures


def test_it_serves_its_ide(context: Context, answer: Answer) -> None:
    answer(DeephavenSettings.of(context.settings).deephaven_port, http(b"<html>"))
    find_service("deephaven").check(context)


def test_it_serves_no_ide(context: Context, answer: Answer) -> None:
    answer(DeephavenSettings.of(context.settings).deephaven_port, http(b"", "404 Not Found"))
    with pytest.raises(NotReady, match="/ide/: HTTP 404"):
        find_service("deephaven").check(context)


def test_it_gets_the_registry_s_root(inside: Context) -> None:
    env = find_service("deephaven").launch(inside).env
    port = inside.settings.schema_registry_port
    assert env["SCHEMA_REGISTRY_URL"] == f"http://redpanda:{port}"
    assert env["KAFKA_BOOTSTRAP"] == f"redpanda:{inside.settings.kafka_port}"


def test_it_keeps_compiled_formulas_in_its_part(inside: Context) -> None:
    env = find_service("deephaven").launch(inside).env
    assert env["DEEPHAVEN_FORMULAS"] == str(inside.parts["deephaven"] / "made" / "formulas.zip")
