"""Tests of the published stack as `docker compose` reads it."""

import json
import re
from string import Template
from typing import Any

import pytest

from racetrack.config import REPO, load
from racetrack.stack.compose.containers import VERSIONS
from racetrack.stack.compose.project import HARNESS, STARTED_BY, Project, environment
from tests.compose_files import (
    AIRGAP,
    CLIENTS,
    OF_ENGINES,
    OF_PUBLISHED_ENGINES,
    OF_THE_STACK,
    ON_REQUEST,
    PUBLISHED,
    defaults_in,
    described,
    dockerfile_of,
    dockerfiles,
    plugin,
)

pytestmark = pytest.mark.slow

FILES = pytest.mark.parametrize("files", [PUBLISHED, AIRGAP], ids=["published", "airgap"])
ANY = "0.0.0.0"  # noqa: S104


def run(services: dict[str, Any]) -> dict[str, Any]:
    """Return the services without the programs that users run when they need them."""
    return {name: of for name, of in services.items() if CLIENTS not in of.get("profiles", [])}


def test_up_starts_the_stack_and_both_published_engines(services: dict[str, Any]) -> None:
    assert run(services).keys() == {*OF_THE_STACK, *OF_ENGINES}
    started = described(*PUBLISHED, profile="none")["services"].keys()
    assert started == {*OF_THE_STACK, *OF_PUBLISHED_ENGINES} - {*ON_REQUEST}


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


def test_every_image_that_is_built_here_is_labelled_with_its_versions(
    services: dict[str, Any],
) -> None:
    """Without labels, a run would name the image by its digest, which nobody can pull."""
    built = {name: service["build"] for name, service in services.items() if "build" in service}
    assert built.keys() & set(OF_THE_STACK) == {"loadgen", "debezium"}
    for name, build in built.items():
        text = dockerfile_of(services[name]).read_text()
        last = re.split(r"^FROM ", text, flags=re.MULTILINE)[-1]
        (label,) = re.findall(rf'^LABEL {re.escape(VERSIONS)}="(.*)"$', last, re.MULTILINE)
        # An argument is empty in a stage that does not declare it.
        known = re.findall(r"^ARG (\w+)$", last, re.MULTILINE)
        given = {**defaults_in(text), **build.get("args", {})}
        args = {arg: value for arg, value in given.items() if arg in known}
        record = json.loads(Template(label.replace("\\", "")).substitute(args))
        assert all(re.search(r"\d", version) for version in record.values()), name


def test_services_are_waited_for_until_they_are_well(services: dict[str, Any]) -> None:
    needed = [how for each in services.values() for how in each.get("depends_on", {}).values()]
    assert {how["condition"] for how in needed} == {"service_healthy"}
    assert services["debezium"]["depends_on"].keys() == {"redpanda", "loadgen"}
    # Health is asked often only at the start.
    health = [each["healthcheck"] for each in run(services).values()]
    assert {(each["start_interval"], each["interval"]) for each in health} == {("1s", "30s")}


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


@FILES
@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "127.0.0.1"),
        ({"BIND_ADDRESS": ANY}, "127.0.0.1"),
        ({"BIND_ADDRESS": "192.0.2.1"}, "192.0.2.1"),
        ({"BIND_ADDRESS": ANY, "KAFKA_ADVERTISED_ADDRESS": "a.example"}, "a.example"),
    ],
)
def test_the_broker_sends_its_clients_what_the_setting_says(
    files: tuple[str, ...], settings: dict[str, str], address: str
) -> None:
    broker = described(*files, **environment(load(settings)))["services"]["redpanda"]
    where = f"{address}:{load().kafka_port}"
    if files == AIRGAP:
        assert broker["environment"]["KAFKA_OUTSIDE"] == where
        assert broker["environment"]["KAFKA_ADVERTISED_ADDRESS"] == ""  # of the internal listener
    else:
        assert f"outside://{where} " in broker["command"][0]


@pytest.mark.parametrize("airgap", ["false", "true"])
def test_the_harness_reads_services_with_ports_and_memory(
    monkeypatch: pytest.MonkeyPatch, airgap: str
) -> None:
    for name, value in plugin().items():
        monkeypatch.setenv(name, value)
    changed = {"LOADGEN_PORT": "50590", "DEEPHAVEN_HEAP": "6g"}
    changed |= {"KAFKA_HEAP": "5g"} if airgap == "true" else {"REDPANDA_MEMORY": "5G"}
    services = Project(load({"AIRGAP": airgap, **changed})).services()
    for service in services.values():
        assert re.fullmatch(r"\d+[mgMG]B?( \d+[mgMG]B?)*", service.memory), service
    assert services["deephaven"].memory.startswith("6g")
    assert services["redpanda"].memory.startswith("5")
    assert services["loadgen"].ports == [50590]
    if airgap == "false":
        assert services.keys() == {*OF_THE_STACK, *OF_ENGINES}  # no programs for users
        assert [services[name].is_built_here for name in ("loadgen", "mysql")] == [True, False]


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
    started = run(found["services"]).values()
    assert {service["labels"][STARTED_BY] for service in started} == {HARNESS}
    assert services["mysql"]["labels"][STARTED_BY] != HARNESS  # put up by hand


def test_what_the_generator_s_image_copies_is_in_its_build_s_context() -> None:
    dockerfile = (REPO / "loadgen/Dockerfile").read_text()
    folders = re.findall(r"^COPY (\w+) /app/\1$", dockerfile, re.MULTILINE)
    assert folders == ["loadgen", "racetrack"]
    let_in = (REPO / "loadgen/Dockerfile.dockerignore").read_text().split()
    assert {"!loadgen", "!racetrack/__init__.py", "!racetrack/workloads"} <= set(let_in)
