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
    dockerfile_of,
    dockerfiles,
)
from tests.stack.compose.conftest import Describe

pytestmark = pytest.mark.slow

FILES = pytest.mark.parametrize("files", [PUBLISHED, AIRGAP], ids=["published", "airgap"])


@pytest.fixture(scope="module")
def services(described: Describe) -> dict[str, Any]:
    found: dict[str, Any] = described(*PUBLISHED)["services"]
    return found


def test_it_is_all_there(services: dict[str, Any], described: Describe) -> None:
    assert services.keys() - clients(services) == {*OF_THE_STACK, *OF_ENGINES}
    # `up` starts both engines of the published experiment, but no program that users run when they
    # need it.
    started = described(*PUBLISHED, profile="none")["services"].keys()
    assert started == {*OF_THE_STACK, *OF_PUBLISHED_ENGINES} - {*ON_REQUEST}


@FILES
def test_every_variable_has_a_value(files: tuple[str, ...], described: Describe) -> None:
    """If a variable had no value, `docker compose up` would take it from the user's shell."""
    for name, service in described(*files)["services"].items():
        unset = [key for key, value in service.get("environment", {}).items() if value is None]
        assert not unset, name


def test_every_image_is_pinned(services: dict[str, Any]) -> None:
    for name, service in services.items():
        tag = service["image"].rpartition(":")[2]
        assert re.search(r"\d+\.\d+", tag), (name, service["image"])
        assert "latest" not in tag
    bases = [
        line
        for file in dockerfiles()
        for line in file.read_text().splitlines()
        if line.startswith("FROM")
    ]
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
        file = dockerfile_of(services[name])
        last = re.split(r"^FROM ", file.read_text(), flags=re.MULTILINE)[-1]
        (label,) = re.findall(rf'^LABEL {re.escape(VERSIONS)}="(.*)"$', last, re.MULTILINE)
        # An argument is empty in a stage that does not declare it.
        known = re.findall(r"^ARG (\w+)$", last, re.MULTILINE)
        given = {**defaults_in(file.read_text()), **build.get("args", {})}
        args = {arg: value for arg, value in given.items() if arg in known}
        record = json.loads(Template(label.replace("\\", "")).substitute(args))
        assert all(re.search(r"\d", version) for version in record.values()), name


def test_every_service_has_a_health_check_that_is_asked_often_only_at_the_start(
    services: dict[str, Any],
) -> None:
    for name in services.keys() - clients(services):
        health = services[name]["healthcheck"]
        assert health["test"], name
        assert (health["start_interval"], health["interval"]) == ("1s", "30s"), name


def test_dependencies_are_waited_for_until_they_are_well(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] == "service_healthy", (name, other)
    assert services["debezium"]["depends_on"].keys() == {"redpanda", "loadgen"}


@FILES
def test_ports_are_published_on_loopback_and_move_with_their_settings(
    files: tuple[str, ...], described: Describe
) -> None:
    ports = {
        name: f"5{number:03}"
        for number, name in enumerate(
            name for name in environment(load()) if name.endswith("_PORT")
        )
    }
    moved = described(*files, **ports)["services"]
    published = [port for service in moved.values() for port in service.get("ports", [])]
    assert len(published) >= 6
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}
    assert {port["published"] for port in published} <= set(ports.values())
    elsewhere = described(*files, BIND_ADDRESS="192.0.2.1")["services"]
    bound = {p["host_ip"] for service in elsewhere.values() for p in service.get("ports", [])}
    assert bound == {"192.0.2.1"}


@FILES
@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "127.0.0.1"),
        ({"BIND_ADDRESS": "0.0.0.0"}, "127.0.0.1"),  # noqa: S104
        ({"BIND_ADDRESS": "192.0.2.1"}, "192.0.2.1"),
        ({"BIND_ADDRESS": "0.0.0.0", "KAFKA_ADVERTISED_ADDRESS": "a.example"}, "a.example"),  # noqa: S104
    ],
)
def test_the_broker_sends_its_clients_what_the_setting_says(
    files: tuple[str, ...], settings: dict[str, str], address: str, described: Describe
) -> None:
    broker = described(*files, **environment(load(settings)))["services"]["redpanda"]
    where = f"{address}:{load().kafka_port}"
    if files == AIRGAP:
        assert broker["environment"]["KAFKA_OUTSIDE"] == where
        assert broker["environment"]["KAFKA_ADVERTISED_ADDRESS"] == ""  # of the internal listener
    else:
        assert f"outside://{where} " in broker["command"][0]


@FILES
def test_selinux_lets_containers_read_what_is_mounted(
    files: tuple[str, ...], described: Describe
) -> None:
    found = described(*files)["services"].values()
    mounts = [mount for service in found for mount in service.get("volumes", [])]
    assert mounts
    # Several containers share the mounted files: with `Z`, only one could read them.
    assert {(mount["type"], mount["bind"].get("selinux")) for mount in mounts} == {("bind", "z")}


@pytest.mark.parametrize("airgap", ["false", "true"])
def test_every_service_reports_how_much_memory_it_may_use(
    compose_plugin: object, monkeypatch: pytest.MonkeyPatch, airgap: str
) -> None:
    for name, value in dict(compose_plugin).items():  # type: ignore[call-overload]
        monkeypatch.setenv(name, value)
    overrides = {"DEEPHAVEN_HEAP": "6g"}
    overrides |= {"KAFKA_HEAP": "5g"} if airgap == "true" else {"REDPANDA_MEMORY": "5G"}
    services = Project(load({"AIRGAP": airgap, **overrides})).services()
    for service in services.values():
        assert re.fullmatch(r"\d+[mgMG]B?( \d+[mgMG]B?)*", service.memory), service
    for name, size in (("deephaven", "6g"), ("redpanda", "5")):
        assert services[name].memory.startswith(size)


def test_a_run_fills_in_its_own_settings(described: Describe) -> None:
    settings = load({"STACK_NAME": "another", "KAFKA_PORT": "50592"})
    variables = described(*PUBLISHED, **environment(settings))
    assert variables["name"] == "another"
    assert variables["services"]["redpanda"]["ports"][0]["published"] == "50592"
    services = variables["services"]
    started = services.keys() - clients(services)
    assert {services[name]["labels"][STARTED_BY] for name in started} == {HARNESS}
    by_hand = described(*PUBLISHED)["services"]
    assert by_hand["mysql"]["labels"][STARTED_BY] != HARNESS


def test_the_users_own_compose_variables_have_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPOSE_FILE", "/nowhere.yml")
    monkeypatch.setenv("COMPOSE_PROFILES", "tools")
    variables = environment(load({"AIRGAP": "true"}))
    assert not [name for name in variables if name.startswith("COMPOSE_")]
    assert variables["AIRGAP"] == "true"
    assert variables["MYSQL_SHOP_PASSWORD"] == load().mysql_shop_password.get_secret_value()


def test_the_harness_reads_the_same(
    compose_plugin: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in dict(compose_plugin).items():  # type: ignore[call-overload]
        monkeypatch.setenv(name, value)
    services = Project(load({"LOADGEN_PORT": "50590"})).services()
    assert services.keys() == {*OF_THE_STACK, *OF_ENGINES}  # no programs for users
    assert services["loadgen"].is_built_here
    assert not services["mysql"].is_built_here
    assert services["loadgen"].ports == [50590]


def test_what_the_generator_s_image_copies_is_in_its_build_s_context() -> None:
    dockerfile = (REPO / "loadgen/Dockerfile").read_text()
    folders = re.findall(r"^COPY (\w+) /app/\1$", dockerfile, re.MULTILINE)
    assert folders == ["loadgen", "racetrack"]
    let_in = (REPO / "loadgen/Dockerfile.dockerignore").read_text().split()
    assert {"!loadgen", "!racetrack/__init__.py", "!racetrack/workloads"} <= set(let_in)


def test_schemas_are_named_without_asking_for_what_only_confluents_registry_has(
    services: dict[str, Any],
) -> None:
    """From 8.3.0 on, the default strategy requests `/associations/…` from the registry."""
    variables = services["debezium"]["environment"]
    for side in ("KEY", "VALUE"):
        strategy = variables[f"CONNECT_{side}_CONVERTER_{side}_SUBJECT_NAME_STRATEGY"]
        assert strategy == "io.confluent.kafka.serializers.subject.TopicNameStrategy"


def clients(services: dict[str, Any]) -> set[str]:
    """Return the names of the programs that users run when they need them."""
    return {name for name, each in services.items() if CLIENTS in each.get("profiles", [])}
