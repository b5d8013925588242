"""The stack as published: what `docker compose` understands of it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Any

import pytest

from engines.pg.services import pgfeed, postgres
from racetrack.settings import REPO, Settings, load
from racetrack.stack.compose.containers import VERSIONS
from racetrack.stack.compose.project import HARNESS, STARTED_BY, Project, environment
from racetrack.stack.compose.published import DEEPHAVEN
from racetrack.stack.native import jvm
from racetrack.stack.native.service import Context
from racetrack.stack.services import debezium, mysql
from tests.stack.compose.conftest import Describe

PUBLISHED = "docker-compose.yml"
AIRGAP = "docker-compose.airgap.yml"
SERVICES = {"mysql", "redpanda", "debezium", "loadgen", "materialized", "deephaven"}
ENGINES = {"flink", "postgres", "pgfeed"}  # they run where they are asked for by name
WHAT_IT_IMPORTS = """
import sys, engines.pg.feed.consumer
for name, module in sys.modules.items():
    if name.startswith("racetrack"):
        print(module.__file__)
"""
ARGUMENTS = "/tmp/racetrack.args"  # of Deephaven's JVM
CLIENTS = {"mzcli"}  # they run once, for a person


@pytest.fixture(scope="module")
def services(described: Describe) -> dict[str, Any]:
    found: dict[str, Any] = described(PUBLISHED)["services"]
    return found


def test_it_is_all_there(services: dict[str, Any], described: Describe) -> None:
    assert services.keys() == SERVICES | ENGINES | CLIENTS
    # `up` starts both engines of the published experiment, and nothing that wants a person.
    assert described(PUBLISHED, profile="none")["services"].keys() == SERVICES


def test_every_image_is_pinned(services: dict[str, Any]) -> None:
    for name, service in services.items():
        tag = service["image"].rpartition(":")[2]
        assert re.search(r"\d+\.\d+", tag), (name, service["image"])
        assert "latest" not in tag
    bases = [
        line
        for file in REPO.glob("*/Dockerfile")
        for line in file.read_text().splitlines()
        if line.startswith("FROM")
    ]
    assert len(bases) >= 4
    # All of them by an argument, which docker-compose.yml fills from .env.
    assert [base for base in bases if not re.search(r":\$\{\w+_VERSION\}( AS \w+)?$", base)] == []


def test_every_image_that_is_built_here_says_so_with_its_versions(
    services: dict[str, Any],
) -> None:
    """So that no run names a digest of it, which nobody could pull."""
    built = {name: service["build"] for name, service in services.items() if "build" in service}
    assert built.keys() == {"loadgen", "debezium", "flink", "pgfeed"}
    for name, build in built.items():
        file = Path(build["context"]) / build.get("dockerfile", "Dockerfile")
        last = re.split(r"^FROM ", file.read_text(), flags=re.MULTILINE)[-1]
        (label,) = re.findall(rf'^LABEL {re.escape(VERSIONS)}="(.*)"$', last, re.MULTILINE)
        # What a stage is not told anew is empty in it.
        known = re.findall(r"^ARG (\w+)$", last, re.MULTILINE)
        args = {arg: value for arg, value in build["args"].items() if arg in known}
        told = json.loads(Template(label.replace("\\", "")).substitute(args))
        assert all(re.search(r"\d", version) for version in told.values()), name


def test_what_the_generator_s_image_copies_is_in_its_build_s_context() -> None:
    dockerfile = (REPO / "loadgen/Dockerfile").read_text()
    folders = re.findall(r"^COPY (\w+) /app/\1$", dockerfile, re.MULTILINE)
    assert folders == ["loadgen", "workloads"]
    let_in = (REPO / "loadgen/Dockerfile.dockerignore").read_text().split()
    assert {f"!{folder}" for folder in folders} <= set(let_in)


def test_every_service_has_a_health_check_that_is_asked_often_only_at_the_start(
    services: dict[str, Any],
) -> None:
    for name in services.keys() - CLIENTS:
        health = services[name]["healthcheck"]
        assert health["test"], name
        assert (health["start_interval"], health["interval"]) == ("1s", "30s"), name


def test_dependencies_are_waited_for_until_they_are_well(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] == "service_healthy", (name, other)
    assert services["debezium"]["depends_on"].keys() == {"redpanda", "loadgen"}


@pytest.mark.parametrize("files", [(PUBLISHED,), (PUBLISHED, AIRGAP)], ids=["published", "airgap"])
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


def test_what_is_kept_is_in_memory_and_of_the_size_that_was_set(described: Describe) -> None:
    sized = described(PUBLISHED, MYSQL_TMPFS="123m", REDPANDA_TMPFS="7g")
    assert sized["services"]["mysql"]["tmpfs"] == ["/var/lib/mysql:size=123m"]
    (redpanda,) = sized["services"]["redpanda"]["tmpfs"]
    assert redpanda.startswith("/var/lib/redpanda/data:size=7g,")
    assert "volumes" not in sized  # nothing outlives `down`


def test_redpanda_heeds_its_settings(described: Describe) -> None:
    told = described(
        PUBLISHED,
        REDPANDA_SMP="3",
        REDPANDA_MEMORY="5G",
        KAFKA_PORT="50592",
        KAFKA_ADVERTISED_ADDRESS="192.0.2.7",
    )
    (command,) = told["services"]["redpanda"]["command"]
    assert "--smp 3 --memory 5G " in command
    assert "inside://redpanda:9092,outside://192.0.2.7:50592" in command
    file = (REPO / "redpanda.yaml").read_text()
    assert re.search(r"^  developer_mode: false$", file, re.MULTILINE)


def test_memory_that_is_counted_for_a_service_has_its_tmpfs_in_it(
    compose_plugin: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in dict(compose_plugin).items():  # type: ignore[call-overload]
        monkeypatch.setenv(name, value)
    sizes = {"MYSQL_TMPFS": "123m", "REDPANDA_TMPFS": "7g", "POSTGRES_TMPFS": "9g"}
    counted = Project(load(sizes)).services()
    for name, size in (("mysql", "123m"), ("redpanda", "7g"), ("postgres", "9g")):
        assert size in counted[name].memory.split()


@pytest.mark.parametrize("files", [(PUBLISHED,), (PUBLISHED, AIRGAP)], ids=["published", "airgap"])
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "127.0.0.1"),
        ({"BIND_ADDRESS": "0.0.0.0"}, "127.0.0.1"),  # noqa: S104
        ({"BIND_ADDRESS": "192.0.2.1"}, "192.0.2.1"),
        ({"BIND_ADDRESS": "0.0.0.0", "KAFKA_ADVERTISED_ADDRESS": "a.example"}, "a.example"),  # noqa: S104
    ],
)
def test_the_broker_tells_its_clients_what_the_setting_says(
    files: tuple[str, ...], settings: dict[str, str], told: str, described: Describe
) -> None:
    broker = described(*files, **environment(load(settings)))["services"]["redpanda"]
    where = f"{told}:{load().kafka_port}"
    if AIRGAP in files:
        assert broker["environment"]["KAFKA_OUTSIDE"] == where
        assert broker["environment"]["KAFKA_ADVERTISED_ADDRESS"] == ""  # of the listener inside
    else:
        assert f"outside://{where} " in broker["command"][0]


def test_the_broker_is_where_the_stack_binds_it_when_compose_is_called_by_hand(
    described: Describe,
) -> None:
    (command,) = described(PUBLISHED, BIND_ADDRESS="192.0.2.1")["services"]["redpanda"]["command"]
    assert "outside://192.0.2.1:" in command


def test_materialize_gets_exactly_the_workers_asked_for(described: Describe) -> None:
    told = described(PUBLISHED, MATERIALIZE_WORKERS="5")["services"]["materialized"]["environment"]
    sizes = json.loads(told["MZ_CLUSTER_REPLICA_SIZES"])
    chosen = told["MZ_BOOTSTRAP_DEFAULT_CLUSTER_REPLICA_SIZE"]
    assert (sizes[chosen]["workers"], sizes[chosen]["scale"]) == (5, 1)
    used = {value for name, value in told.items() if name.endswith("CLUSTER_REPLICA_SIZE")}
    assert used == sizes.keys()
    assert told["MZ_NO_TELEMETRY"] == "1"


def test_deephaven_heeds_its_settings(described: Describe) -> None:
    told = described(PUBLISHED, DEEPHAVEN_HEAP="3g", DEEPHAVEN_CYCLE_MS="250", DEEPHAVEN_PSK="key")
    options = told["services"]["deephaven"]["environment"]["START_OPTS"].split()
    for option in (
        "-Xmx3g",
        "-DPeriodicUpdateGraph.targetCycleDurationMillis=250",
    ):
        assert option in options


def test_deephaven_s_key_is_in_no_argument(described: Describe, tmp_path: Path) -> None:
    """It is run up to where the image's own entry point begins, and read by a JVM."""
    key = "a-key#1"
    service = described(PUBLISHED, DEEPHAVEN_PSK=key)["services"]["deephaven"]
    told = service["environment"]
    file = tmp_path / "args"
    (script,) = service["command"]
    assert key not in script
    assert key not in told["START_OPTS"]
    start = DEEPHAVEN.defaults["entry point"].value
    assert script.endswith(f"exec {start}")
    script = script.replace(start, "true").replace(ARGUMENTS, str(file)).replace("$$", "$")
    variables = {**os.environ, "DEEPHAVEN_PSK": told["DEEPHAVEN_PSK"]}
    subprocess.run([*service["entrypoint"], script], env=variables, check=True)
    assert file.stat().st_mode & 0o077 == 0
    options = told["START_OPTS"].replace(ARGUMENTS, str(file)).split()
    done = subprocess.run(
        [jvm.java(), *options, "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"authentication.psk = {key}\n" in done.stderr


def test_images_that_are_made_here_begin_as_they_were_made_to(described: Describe) -> None:
    for name in ("mysql", "redpanda", "debezium", "deephaven", "flink", "postgres"):
        service = described(PUBLISHED, AIRGAP)["services"][name]
        assert (service["entrypoint"], service["command"]) == (None, None), name


def test_scripts_are_where_people_paste_them_from(services: dict[str, Any]) -> None:
    for name in ("deephaven", "mzcli"):
        mounts = {each["target"]: each for each in services[name]["volumes"]}
        assert mounts["/scripts"]["source"] == str(REPO / "scripts")
        assert mounts["/scripts"]["read_only"]


@pytest.mark.parametrize("files", [(PUBLISHED,), (PUBLISHED, AIRGAP)], ids=["published", "airgap"])
def test_selinux_lets_containers_read_what_is_mounted(
    files: tuple[str, ...], described: Describe
) -> None:
    found = described(*files)["services"].values()
    mounts = [mount for service in found for mount in service.get("volumes", [])]
    assert mounts
    # Shared by several containers: `Z` would take it away from the others.
    assert {(mount["type"], mount["bind"].get("selinux")) for mount in mounts} == {("bind", "z")}


@pytest.mark.parametrize("airgap", ["false", "true"])
def test_every_service_says_how_much_memory_it_may_use(
    compose_plugin: object, monkeypatch: pytest.MonkeyPatch, airgap: str
) -> None:
    for name, value in dict(compose_plugin).items():  # type: ignore[call-overload]
        monkeypatch.setenv(name, value)
    knobs = {"DEEPHAVEN_HEAP": "7g", "CONNECT_HEAP": "6g"}
    knobs |= {"KAFKA_HEAP": "5g"} if airgap == "true" else {"REDPANDA_MEMORY": "5G"}
    told = Project(load({"AIRGAP": airgap, **knobs})).services()
    for service in told.values():
        assert re.fullmatch(r"\d+[mgMG]( \d+[mgMG])*", service.memory), service
    for name, size in (("deephaven", "7g"), ("debezium", "6g"), ("redpanda", "5")):
        assert told[name].memory.startswith(size)


def test_a_run_fills_in_its_own_settings(described: Describe) -> None:
    settings = load({"STACK_NAME": "another", "KAFKA_PORT": "50592", "DEEPHAVEN_HEAP": "3g"})
    told = described(PUBLISHED, **environment(settings))
    assert told["name"] == "another"
    assert told["services"]["redpanda"]["ports"][0]["published"] == "50592"
    labels = {
        service["labels"][STARTED_BY] for n, service in told["services"].items() if n in SERVICES
    }
    assert labels == {HARNESS}
    by_hand = described(PUBLISHED)["services"]
    assert by_hand["mysql"]["labels"][STARTED_BY] != HARNESS


def test_the_users_own_compose_variables_have_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPOSE_FILE", "/nowhere.yml")
    monkeypatch.setenv("COMPOSE_PROFILES", "tools")
    told = environment(load({"AIRGAP": "true"}))
    assert not [name for name in told if name.startswith("COMPOSE_")]
    assert told["AIRGAP"] == "true"
    assert told["MYSQL_SHOP_PASSWORD"] == load().mysql_shop_password.get_secret_value()


def test_the_harness_reads_the_same(
    compose_plugin: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in dict(compose_plugin).items():  # type: ignore[call-overload]
        monkeypatch.setenv(name, value)
    told = Project(load({"LOADGEN_PORT": "50590"})).services()
    assert told.keys() == SERVICES | ENGINES  # clients are no services of a run
    assert told["loadgen"].is_built_here
    assert not told["mysql"].is_built_here
    assert told["loadgen"].ports == [50590]


def test_the_connector_is_the_native_one(context: Context) -> None:
    ours = json.loads((REPO / "debezium/connector.json").read_text())
    native = debezium.connector_config(context)
    elsewhere = {"database.hostname", "database.port", "schema.history.internal.file.filename"}
    assert ours.keys() == native.keys()
    assert {k: v for k, v in ours.items() if k not in elsewhere} == {
        k: v for k, v in native.items() if k not in elsewhere
    }


def test_schemas_are_named_without_asking_for_what_only_confluents_registry_has(
    services: dict[str, Any],
) -> None:
    """From 8.3.0 on, the converter's own default asks the registry for `/associations/…`."""
    told = services["debezium"]["environment"]
    for side in ("KEY", "VALUE"):
        strategy = told[f"CONNECT_{side}_CONVERTER_{side}_SUBJECT_NAME_STRATEGY"]
        assert strategy == "io.confluent.kafka.serializers.subject.TopicNameStrategy"


def test_mysql_is_set_up_as_natively(services: dict[str, Any], context: Context) -> None:
    options = dict(
        option.removeprefix("--").split("=", 1) for option in services["mysql"]["command"]
    )
    native = mysql.configuration(context)
    assert {name: native[name] for name in options.keys() & native.keys()} == {
        name: options[name] for name in options.keys() & native.keys()
    }
    assert options["log-bin"]
    assert (options["binlog-format"], options["binlog-row-image"]) == ("ROW", "FULL")
    of_this_machine = re.compile("dir$|^user$|^socket$|^port$|^pid-file$|^bind|secure")
    assert not [n for n in native.keys() - options.keys() if not of_this_machine.search(n)]


def test_postgresql_is_set_up_as_natively(services: dict[str, Any], context: Context) -> None:
    options = dict(
        option.removeprefix("-c").split("=") for option in services["postgres"]["command"]
    )
    native = postgres.configuration(context)
    of_this_machine = {"listen_addresses", "port", "unix_socket_directories"}
    assert options == {name: v for name, v in native.items() if name not in of_this_machine}


def test_what_feeds_postgresql_is_told_the_same_as_natively(
    services: dict[str, Any], context: Context
) -> None:
    native = pgfeed.PgFeed().launch(context).env
    ours = services["pgfeed"]["environment"]
    of_this_machine = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
    assert ours.keys() == native.keys() - of_this_machine
    for name in ("PGUSER", "PGDATABASE", "PGPASSWORD", "POSTGRES_BATCH_MS"):
        assert ours[name] == native[name]


def test_its_published_image_is_given_all_that_it_imports() -> None:
    ignored = (REPO / "pgfeed/Dockerfile.dockerignore").read_text()
    listed = {
        path
        for line in ignored.splitlines()
        if line.startswith("!racetrack/")
        for path in REPO.glob(line.removeprefix("!"))
    }
    imported = subprocess.run(
        [sys.executable, "-c", WHAT_IT_IMPORTS],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {Path(line) for line in imported.stdout.splitlines()} <= listed


def test_debeziums_user_has_the_native_rights_and_any_password(tmp_path: Path) -> None:
    said = tmp_path / "said"
    (tmp_path / "mysql").write_text(f'#!/bin/sh\n[ "$MYSQL_PWD" = root ] && cat > {said}\n')
    (tmp_path / "mysql").chmod(0o755)
    subprocess.run(
        ["bash", str(REPO / "debezium/mysql-user.sh")],
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "MYSQL_ROOT_PASSWORD": "root",
            "MYSQL_DEBEZIUM_PASSWORD": "it's a \\ word",
        },
        check=True,
    )
    statements = " ".join(said.read_text().split())
    assert f"GRANT {mysql.DEBEZIUM_RIGHTS} ON *.* TO 'debezium'@'%';" in statements
    assert r"IDENTIFIED BY 'it\'s a \\ word';" in statements


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Of a native service; nothing of it is started."""
    settings: Settings = load()
    return Context(settings, tmp_path, {"mysql": tmp_path / "mysql", "debezium": tmp_path})
