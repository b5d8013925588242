"""Tests of a Kafka Connect that the user provides, with a fake server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from racetrack.config import Settings, load
from racetrack.errors import SetupError, UsageError
from racetrack.run import checks, faults
from racetrack.stack import debezium_connector
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.own_connect import CHECK, PLUGINS, Connect, connector_config, versions
from racetrack.stack.provided import every
from racetrack.stack.service import Context, find_service
from tests.fake_server import JsonHandler, serving
from tests.run.fakes import FakeEngine

CLUSTER, WORD = "an-id", "mysql-word"
REGISTRY_WORD = "registry-word"
CONNECT = Connect(lambda _: CLUSTER)


class FakeConnect(JsonHandler):
    """A fake API of Kafka Connect: connectors by name, and errors (status by method and path)."""

    connectors: ClassVar[dict[str, dict[str, Any]]]
    refused: ClassVar[dict[str, int]]
    plugins: ClassVar[list[str]]
    errors: ClassVar[list[str]]

    def get(self) -> None:
        path = urlsplit(self.path).path
        if path == "/":
            self._reply({"version": "4.3.1", "kafka_cluster_id": CLUSTER})
        elif path == "/connector-plugins":
            versions = {debezium_connector.CLASS: "3.6"}  # converters often report none
            self._reply([{"class": p, "version": versions.get(p)} for p in self.plugins])
        else:
            self._about(path.split("/")[2])

    def post(self) -> None:
        body = self.received()
        self.connectors[body["name"]] = body
        self._reply(body, 201)

    def put(self) -> None:
        if self.path.endswith("/validate"):
            self.received()
            value = {"name": "database.hostname", "errors": self.errors}
            self._reply({"configs": [{"value": value}]})
        else:
            self._reply(None, 202)

    def delete(self) -> None:
        if not self.path.endswith("/offsets") and not self._is_refused:
            del self.connectors[self.path.split("/")[2]]
        self._reply({})

    def _about(self, name: str) -> None:
        if name in self.connectors:
            self._reply({"connector": {"state": "STOPPED"}, "tasks": []})
        else:
            self.answer({"message": f"Connector {name} not found"}, 404)

    @property
    def _is_refused(self) -> bool:
        return f"{self.command} {urlsplit(self.path).path}" in self.refused

    def _reply(self, body: object, status: int = 200) -> None:
        request = f"{self.command} {urlsplit(self.path).path}"
        self.answer(body, self.refused.get(request, status))


@pytest.fixture
def connect() -> Iterator[tuple[type[FakeConnect], str]]:
    class Own(FakeConnect):
        connectors: ClassVar[dict[str, dict[str, Any]]] = {}
        refused: ClassVar[dict[str, int]] = {}
        plugins: ClassVar[list[str]] = list(PLUGINS)
        errors: ClassVar[list[str]] = []

    with serving(Own) as url:
        yield Own, url


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """Return a folder with files of passwords."""
    (tmp_path / "mysql").write_text(f"{WORD}\n")
    (tmp_path / "registry").write_text(f"{REGISTRY_WORD}\n")
    (tmp_path / "connect").write_text("connect-word\n")
    return tmp_path


def settings(words: Path, url: str = "http://c.example:8083", **changed: str) -> Settings:
    own = {
        "KAFKA_BOOTSTRAP_SERVERS": "a.example:9092",
        "KAFKA_TOPIC_PREFIX": "race-1.",
        "REGISTRY_URL": "https://r.example/apis/ccompat/v7",
        "REGISTRY_USERNAME": "me",
        "REGISTRY_PASSWORD_FILE": str(words / "registry"),
        "MYSQL_URL": "mysql://me@db.example",
        "MYSQL_PASSWORD_FILE": str(words / "mysql"),
        "CONNECT_URL": url,
    }
    return load({**own, **changed})


def reason(used: Settings) -> str:
    with pytest.raises(SetupError) as refused:
        CONNECT.check(used)
    (line,) = str(refused.value).splitlines()[1:]
    return line.strip()


def test_the_check_leaves_nothing(connect: tuple[type[FakeConnect], str], words: Path) -> None:
    own, url = connect
    passed = CONNECT.check(settings(words, url))
    assert passed.operations[-1] == "delete connectors"
    assert own.connectors == {}


@pytest.mark.parametrize(
    ("request_line", "status", "wanted"),
    [
        ("GET /", 401, "CONNECT_USERNAME: can't reach it: HTTP 401"),
        ("GET /connector-plugins", 404, "CONNECT_URL: can't list plugins: HTTP 404"),
        ("POST /connectors", 403, "CONNECT_USERNAME: can't create connectors: HTTP 403"),
        ("POST /connectors", 400, "CONNECT_URL: can't create connectors: HTTP 400"),
        (f"DELETE /connectors/{CHECK}", 403, "CONNECT_USERNAME: can't delete connectors"),
    ],
    ids=["no user", "no plugins", "no right", "bad request", "no right to delete"],
)
def test_a_refusal_is_named_with_the_answer(
    connect: tuple[type[FakeConnect], str], words: Path, request_line: str, status: int, wanted: str
) -> None:
    own, url = connect
    own.refused[request_line] = status
    assert reason(settings(words, url)).startswith(wanted)


def test_a_missing_plugin_is_named(connect: tuple[type[FakeConnect], str], words: Path) -> None:
    own, url = connect
    own.plugins.remove(debezium_connector.CONVERTER)
    assert f"it has no plugin {debezium_connector.CONVERTER}" in reason(settings(words, url))


def test_debezium_s_own_errors_are_shown(
    connect: tuple[type[FakeConnect], str], words: Path
) -> None:
    own, url = connect
    own.errors.append("Unable to connect")
    assert "database.hostname: Unable to connect" in reason(settings(words, url))
    assert own.connectors == {}


def test_another_kafka_is_refused(connect: tuple[type[FakeConnect], str], words: Path) -> None:
    _, url = connect
    with pytest.raises(SetupError, match=f"its Kafka has the id {CLUSTER}, and that of"):
        Connect(lambda _: "other").check(settings(words, url))


def test_only_the_run_s_connector_is_removed(
    connect: tuple[type[FakeConnect], str], words: Path
) -> None:
    own, url = connect
    own.connectors.update({RUN_NAME: {}, f"{RUN_NAME}7": {}, "theirs": {}})
    (line,) = CONNECT.remove(settings(words, url), RUN_NAME)
    assert line == f"removed the connector {RUN_NAME} and its offsets from {url}"
    assert set(own.connectors) == {f"{RUN_NAME}7", "theirs"}
    assert CONNECT.remove(settings(words, url), RUN_NAME) == ()
    assert CONNECT.remove(settings(words, url), "") == ()


def test_what_can_t_be_removed_is_listed(
    connect: tuple[type[FakeConnect], str], words: Path
) -> None:
    own, url = connect
    own.connectors[RUN_NAME] = {}
    own.refused[f"DELETE /connectors/{RUN_NAME}/offsets"] = 405
    (line,) = CONNECT.remove(settings(words, url), RUN_NAME)
    assert "can't delete offsets: HTTP 405" in line and RUN_NAME in line
    assert own.connectors == {}  # the rest is removed nevertheless
    (line,) = CONNECT.remove(settings(words, "http://127.0.0.1:1"), RUN_NAME)
    assert f"DELETE http://127.0.0.1:1/connectors/{RUN_NAME}" in line


def test_the_connector_reaches_the_services_themselves(words: Path) -> None:
    config = connector_config(settings(words))
    for side in ("key", "value"):
        converter = f"{side}.converter"
        assert config[f"{converter}.apicurio.registry.url"] == (
            "https://r.example/apis/registry/v2"
        )
        assert config[f"{converter}.apicurio.auth.password"] == REGISTRY_WORD
    assert config["database.hostname"] == "db.example"
    assert config["database.password"] == WORD
    assert config["topic.prefix"] == "race-1.mysql"
    assert config["transforms"] == "rename"


def test_references_take_the_place_of_passwords(words: Path) -> None:
    reference = "${file:/etc/connect:password}"
    names = ("database", "key.converter.apicurio.auth", "value.converter.apicurio.auth")
    file = words / "own.properties"
    file.write_text("# ours\n\n" + "".join(f"{name}.password = {reference}\n" for name in names))
    config = connector_config(settings(words, CONNECT_PROPERTIES_FILE=str(file)))
    assert {config[f"{name}.password"] for name in names} == {reference}
    assert WORD not in json.dumps(config) and REGISTRY_WORD not in json.dumps(config)


def test_the_service_is_a_relay_with_the_login(context: Context, words: Path) -> None:
    used = settings(
        words,
        "https://c.example:8443/connect",
        CONNECT_USERNAME="her",
        CONNECT_PASSWORD_FILE=str(words / "connect"),
    )
    launch = find_service("debezium").launch(Context(used, context.work, context.parts))
    file = context.work / "nginx.conf"
    assert file.stat().st_mode & 0o077 == 0
    assert "proxy_pass https://apicurio/connect$request_uri;" in file.read_text()
    assert "Basic aGVyOmNvbm5lY3Qtd29yZA==" in file.read_text()
    assert "Basic" not in " ".join(launch.argv)


def test_versions_are_those_of_its_plugins(connect: tuple[type[FakeConnect], str]) -> None:
    assert versions(connect[1]) == {"debezium": "3.6", "kafka-connect": "4.3.1"}


def test_it_is_a_service_that_faults_can_t_hit(words: Path) -> None:
    used = settings(words)
    assert "debezium" in checks.services_of(FakeEngine(), used)  # the relay to it
    with pytest.raises(UsageError, match="the debezium runs elsewhere, out of reach"):
        faults.services_hit(faults.parse("kill:debezium@1s"), FakeEngine(), used)


def test_it_is_removed_before_what_it_uses() -> None:
    order = [each.service for each in every()]
    assert order.index("debezium") > max(map(order.index, ("broker", "registry", "mysql")))


def test_it_needs_all_that_it_uses() -> None:
    with pytest.raises(UsageError, match="CONNECT_URL needs KAFKA_BOOTSTRAP_SERVERS, REGISTRY_URL"):
        load({"CONNECT_URL": "http://c.example"})
