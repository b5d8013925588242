"""Tests of a registry that the user provides: a real one, behind TLS and a password."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack import install
from racetrack.config import Settings, load
from racetrack.errors import BusyError, SetupError
from racetrack.stack import net
from racetrack.stack.avro import Avro
from racetrack.stack.own_registry import ELSEWHERE
from racetrack.stack.service import Context, NotReady, find_service
from racetrack.stack.services import registry as service
from tests.ports import free_ports
from tests.secured_registry import PASSWORD, SecuredRegistry, secured_registry
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PREFIX = "race-1."
KAFKA = {"KAFKA_BOOTSTRAP_SERVERS": "a.example:9092", "KAFKA_TOPIC_PREFIX": PREFIX}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredRegistry]:
    with secured_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


def settings(registry: SecuredRegistry, **changed: str) -> Settings:
    return load({**KAFKA, **registry.settings(), **changed})


def test_the_check_lists_what_is_possible_and_leaves_nothing(registry: SecuredRegistry) -> None:
    passed = ELSEWHERE.check(settings(registry))
    assert passed.operations[:2] == ("list schemas", "register schemas")
    assert passed.clock is None
    assert registry.subjects() == set()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"REGISTRY_PASSWORD_FILE": ""}, "REGISTRY_USERNAME: can't list schemas: HTTP 401"),
        ({"REGISTRY_SSL_CA_LOCATION": ""}, "REGISTRY_SSL_CA_LOCATION: can't list schemas: GET"),
        ({"REGISTRY_URL": "https://localhost:1"}, "REGISTRY_URL: can't list schemas: GET"),
    ],
)
def test_a_wrong_setting_is_named_with_the_answer(
    registry: SecuredRegistry, changed: dict[str, str], reason: str
) -> None:
    with pytest.raises(SetupError) as refused:
        ELSEWHERE.check(settings(registry, **changed))
    (line,) = str(refused.value).splitlines()[1:]
    assert line.strip().startswith(reason)
    assert PASSWORD not in line


def test_schemas_of_others_stay(registry: SecuredRegistry) -> None:
    for subject in (f"{PREFIX}mine-value", "race-10.theirs-value", "theirs-key"):
        registry.register(subject)
    with pytest.raises(BusyError, match=rf"1 schemas begin with {PREFIX}"):
        ELSEWHERE.check(settings(registry))
    (line,) = ELSEWHERE.remove(settings(registry), "")
    assert line.startswith("removed 1 schemas from https://localhost:")
    assert registry.subjects() == {"race-10.theirs-value", "theirs-key"}
    assert ELSEWHERE.remove(settings(registry), "") == []
    # What can't be removed is listed.
    (line,) = ELSEWHERE.remove(settings(registry, REGISTRY_USERNAME="nobody"), "")
    assert f"not all schemas {PREFIX}* were removed" in line and "HTTP 401" in line


def test_clients_on_this_machine_reach_it_through_the_relay(
    registry: SecuredRegistry, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    used = settings(registry, SCHEMA_REGISTRY_PORT=str(port))
    parts = install.ensure(["registry", "nginx"], install.read_versions(), print)
    context = Context(used, tmp_path, parts)
    launch = find_service("registry").launch(context)
    assert PASSWORD not in " ".join(launch.argv)
    relay = subprocess.Popen(launch.argv, cwd=tmp_path, env={**os.environ, **launch.env})
    try:
        wait_until(lambda: _answers(used), "the relay answers", 10)
        avro = Avro(service.url(used))
        record = {"name": "r", "type": "record", "fields": [{"name": "f", "type": "long"}]}
        number = avro.register(f"{PREFIX}x-value", record)
        assert avro.decode(avro.encode(number, {"f": 7})) == {"f": 7}
        assert f"{PREFIX}x-value" in registry.subjects()
        assert net.get_json(f"{service.native_url(used)}/system/info")
        assert (tmp_path / "nginx.conf").stat().st_mode & 0o077 == 0
    finally:
        relay.kill()
        relay.wait()
        ELSEWHERE.remove(used, "")


def _answers(used: Settings) -> bool:
    try:
        service.subjects(used)
    except NotReady:
        return False
    return True
