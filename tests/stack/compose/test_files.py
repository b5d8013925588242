"""Tests of the published stack as `docker compose` reads it."""

import re
from typing import Any

import pytest

from racetrack.config import load
from racetrack.stack.compose.project import HARNESS, STARTED_BY, environment
from tests.compose_files import (
    AIRGAP,
    CLIENTS,
    PUBLISHED,
    described,
    dockerfiles,
)

pytestmark = pytest.mark.slow

FILES = pytest.mark.parametrize("files", [PUBLISHED, AIRGAP], ids=["published", "airgap"])


@FILES
def test_variables_are_not_taken_from_the_shell_and_selinux_lets_files_be_read(
    files: tuple[str, ...],
) -> None:
    found = described(*files)["services"]
    for name, service in found.items():
        # If a variable had no value, `docker compose up` would take it from the user's shell.
        assert None not in service.get("environment", {}).values(), name
    mounts = [mount for service in found.values() for mount in service.get("volumes", [])]
    # Several containers share the mounted files: with `Z`, only one could read them.
    assert {(mount["type"], mount["bind"].get("selinux")) for mount in mounts} == {("bind", "z")}


def test_every_image_is_pinned(services: dict[str, Any]) -> None:
    for service in services.values():
        assert re.search(r":[^:]*\d+\.\d+[^:]*$", service["image"]), service["image"]
    lines = [line for file in dockerfiles() for line in file.read_text().splitlines()]
    bases = [line for line in lines if line.startswith("FROM")]
    assert len(bases) >= 4
    # The version of each image is an argument: the file has its value, or a compose file gives it.
    assert [base for base in bases if not re.search(r":\$\{\w+_VERSION\}( AS \w+)?$", base)] == []


@FILES
def test_ports_are_published_on_loopback_and_move_with_their_settings(
    files: tuple[str, ...],
) -> None:
    names = [name for name in environment(load()) if name.endswith("_PORT")]
    ports = {name: f"5{number:03}" for number, name in enumerate(names)}

    def published(**settings: str) -> list[dict[str, str]]:
        found = described(*files, **settings)["services"].values()
        return [port for service in found for port in service.get("ports", [])]

    moved = published(**ports)
    assert len(moved) >= 6
    assert {port["host_ip"] for port in moved} == {"127.0.0.1"}
    assert {port["published"] for port in moved} <= set(ports.values())
    elsewhere = published(BIND_ADDRESS="192.0.2.1")
    assert {port["host_ip"] for port in elsewhere} == {"192.0.2.1"}


def test_a_run_fills_in_its_own_settings_and_not_the_users_compose_variables(
    services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPOSE_FILE", "/nowhere.yml")
    monkeypatch.setenv("COMPOSE_PROFILES", "tools")
    variables = environment(load({"STACK_NAME": "another", "KAFKA_PORT": "50592"}))
    assert not [name for name in variables if name.startswith("COMPOSE_")]
    assert environment(load({"AIRGAP": "true"}))["AIRGAP"] == "true"
    assert variables["MYSQL_SHOP_PASSWORD"] == load().mysql_shop_password.get_secret_value()
    monkeypatch.undo()
    found = described(*PUBLISHED, **variables)
    assert found["name"] == "another"
    assert found["services"]["redpanda"]["ports"][0]["published"] == "50592"
    started = [of for of in found["services"].values() if CLIENTS not in of.get("profiles", [])]
    assert {service["labels"][STARTED_BY] for service in started} == {HARNESS}
    assert services["mysql"]["labels"][STARTED_BY] != HARNESS  # put up by hand
