"""What containers of the stack are set up with is what the native services are set up with."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from racetrack import plugins
from racetrack.config import REPO, Settings, load
from racetrack.stack.compose.project import Project
from racetrack.stack.service import Context
from racetrack.stack.services import debezium, loadgen, mysql, redis
from racetrack.workloads.contract import find_workload
from tests.compose_files import service

# Which variables Connect may read for a connector.
ALLOWED = "CONNECT_CONFIG_PROVIDERS_ENV_PARAM_ALLOWLIST_PATTERN"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Of a native service; nothing of it is started."""
    settings: Settings = load()
    return Context(settings, tmp_path, {"mysql": tmp_path / "mysql", "debezium": tmp_path})


def with_the_generator(context: Context, services: list[str]) -> Context:
    """As if the load generator were installed, among these services."""
    library = context.work / "loadgen" / "lib" / "librdkafka.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    return replace(context, parts={"loadgen": context.work / "loadgen"}, services=services)


@pytest.mark.parametrize("workload", plugins.workload_names())
def test_the_connector_is_the_native_one(workload: str, context: Context) -> None:
    told = service("debezium", WORKLOAD=workload)["environment"]
    given = re.fullmatch(r"MYSQL_DEBEZIUM_PASSWORD\|(\w+)\|(\w+)", told[ALLOWED])
    assert given
    text = (REPO / "debezium/connector.json").read_text()
    for name in given.groups():
        text = text.replace(f"${{env:{name}}}", told[name])
    ours = json.loads(text)
    native = debezium.connector_config(replace(context, settings=load({"WORKLOAD": workload})))
    elsewhere = {
        "database.hostname",
        "database.port",
        "database.server.id",  # natively a second one may train beside it
        "schema.history.internal.file.filename",
    }
    # Confluent's converter keeps NULL by an option; Apicurio's needs our transform.
    native = {k: v for k, v in native.items() if not k.startswith("transforms")}
    assert told["CONNECT_VALUE_CONVERTER_IGNORE_DEFAULT_FOR_NULLABLES"] == "true"
    assert ours.keys() == native.keys()
    assert {k: v for k, v in ours.items() if k not in elsewhere} == {
        k: v for k, v in native.items() if k not in elsewhere
    }


@pytest.mark.parametrize("workload", plugins.workload_names())
def test_the_database_and_its_user_have_the_workload_s_name(workload: str) -> None:
    name = find_workload(workload).database
    database = service("mysql", WORKLOAD=workload)["environment"]
    assert (database["MYSQL_DATABASE"], database["MYSQL_USER"]) == (name, name)
    assert service("loadgen", WORKLOAD=workload)["environment"]["MYSQL_USER"] == name


def test_mysql_is_set_up_as_natively(context: Context) -> None:
    options = dict(
        option.removeprefix("--").split("=", 1) for option in service("mysql")["command"]
    )
    native = mysql.configuration(context)
    assert {name: native[name] for name in options.keys() & native.keys()} == {
        name: options[name] for name in options.keys() & native.keys()
    }
    assert options["log-bin"]
    assert (options["binlog-format"], options["binlog-row-image"]) == ("ROW", "FULL")
    of_this_machine = re.compile("dir$|^user$|^socket$|^port$|^pid-file$|^bind|secure")
    assert not [n for n in native.keys() - options.keys() if not of_this_machine.search(n)]


def test_redis_is_set_up_as_natively(context: Context) -> None:
    words = service("redis")["command"]
    options = dict(zip(words[::2], words[1::2], strict=True))
    native = redis.configuration(context)
    # The image's own has no protected mode, no environment is looked at there, and every address
    # is listened on.
    only_native = {"--bind", "--port", "--protected-mode", "--set-proc-title"}
    assert options == {name: native[name] for name in native.keys() - only_native}


@pytest.mark.parametrize(
    ("services", "inside", "here"),
    [(["loadgen"], "", ""), (["loadgen", "redis"], "redis:6379", "127.0.0.1:6379")],
)
def test_the_generator_is_told_of_a_redis_only_where_there_is_one(
    services: list[str], inside: str, here: str, context: Context
) -> None:
    native = with_the_generator(context, services)
    assert loadgen.environment(native)["LOADGEN_REDIS"] == here
    begun: list[dict[str, str]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda *_, env, **__: begun.append(env))
        Project(context.settings).up(services, 1.0)
    assert service("loadgen", **begun[0])["environment"]["LOADGEN_REDIS"] == inside


def test_the_generator_s_memory_does_not_depend_on_the_machine_s_caches(context: Context) -> None:
    native = loadgen.environment(with_the_generator(context, ["loadgen"]))
    inside = service("loadgen")["environment"]
    assert native["PYPY_GC_NURSERY"] == inside["PYPY_GC_NURSERY"] == "4MB"


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
