"""Tests that Debezium and MySQL in containers have the configuration of the native services."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from racetrack import plugins
from racetrack.config import REPO, load
from racetrack.stack.service import Context
from racetrack.stack.services import debezium, mysql
from racetrack.workloads.contract import find_workload
from tests.compose_files import service

# Connect's setting for the environment variables that a connector's configuration may refer to.
ALLOWED = "CONNECT_CONFIG_PROVIDERS_ENV_PARAM_ALLOWLIST_PATTERN"
WITH_TABLES = [name for name in plugins.workload_names() if find_workload(name).tables]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Return a context for the configuration of native services. Nothing is started."""
    return Context(load(), tmp_path, {"mysql": tmp_path / "mysql", "debezium": tmp_path})


@pytest.mark.slow
@pytest.mark.parametrize("workload", WITH_TABLES)
def test_the_connector_is_the_native_one(workload: str, context: Context) -> None:
    environment = service("debezium", WORKLOAD=workload)["environment"]
    given = re.fullmatch(r"MYSQL_DEBEZIUM_PASSWORD\|(\w+)\|(\w+)", environment[ALLOWED])
    assert given
    text = (REPO / "debezium/connector.json").read_text()
    for name in given.groups():
        text = text.replace(f"${{env:{name}}}", environment[name])
    ours = json.loads(text)
    native = debezium.connector_config(replace(context, settings=load({"WORKLOAD": workload})))
    # To keep NULL, Confluent's converter has an option, but Apicurio's, which is used natively,
    # needs our transform.
    native = {k: v for k, v in native.items() if not k.startswith("transforms")}
    assert environment["CONNECT_VALUE_CONVERTER_IGNORE_DEFAULT_FOR_NULLABLES"] == "true"
    # From 8.3.0 on, its default strategy requests what only Confluent's registry has.
    for side in ("KEY", "VALUE"):
        strategy = environment[f"CONNECT_{side}_CONVERTER_{side}_SUBJECT_NAME_STRATEGY"]
        assert strategy == "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    differing = {name for name in ours if ours[name] != native.get(name)}
    assert ours.keys() == native.keys()
    assert differing <= {
        "database.hostname",
        "database.port",
        "database.server.id",  # natively, a second one may run to make an archive
        "schema.history.internal.file.filename",
    }
    database = service("mysql", WORKLOAD=workload)["environment"]
    loadgen = service("loadgen", WORKLOAD=workload)["environment"]
    users = database["MYSQL_DATABASE"], database["MYSQL_USER"], loadgen["MYSQL_USER"]
    assert {*users} == {find_workload(workload).database}


def test_mysql_is_set_up_as_natively(context: Context) -> None:
    options = dict(
        option.removeprefix("--").split("=", 1) for option in service("mysql")["command"]
    )
    native = mysql.configuration(context)
    assert [n for n in options.keys() & native.keys() if options[n] != native[n]] == []
    assert options["log-bin"]
    assert (options["binlog-format"], options["binlog-row-image"]) == ("ROW", "FULL")
    of_this_machine = re.compile("dir$|^user$|^socket$|^port$|^pid-file$|^bind|secure")
    assert not [n for n in native.keys() - options.keys() if not of_this_machine.search(n)]
