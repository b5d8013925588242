"""Tests of every service before it runs: it gets its ports and the loopback address, and its
secrets are hidden."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from racetrack.config import Settings, every_setting
from racetrack.stack.service import Context, Launch, find_service
from tests.service_facts import FACTS, LAUNCHED

pytestmark = pytest.mark.slow

SECRETS = [name for name, field in every_setting().items() if field.annotation is SecretStr]


def written(context: Context) -> str:
    """Return the text of every file that a launch wrote into its work folder."""
    files = [path for path in context.work.rglob("*") if path.is_file()]
    return "\n".join(path.read_text(errors="replace") for path in files)


def launch(name: str, context: Context) -> Launch:
    return find_service(name).launch(context)


def secrets(settings: Settings) -> list[str]:
    values = [value.get_secret_value() for _, value in settings if isinstance(value, SecretStr)]
    assert len(values) == len(SECRETS) >= 3
    return values


@pytest.fixture
def context(context: Context) -> Context:
    """Return a context in which each secret is a text that occurs nowhere else."""
    secret = {name: SecretStr(f"a-{name}-of-its-own") for name in SECRETS}
    return replace(context, settings=context.settings.model_copy(update=secret))


@pytest.mark.parametrize("name", LAUNCHED)
def test_ports_and_address_reach_the_process(name: str, context: Context) -> None:
    started = launch(name, context)
    text = "\n".join([*started.argv, *started.env.values(), written(context)])
    for port in find_service(name).ports(context.settings).values():
        assert str(port) in text
    assert "127.0.0.1" in text
    assert "0.0.0.0" not in text  # noqa: S104


@pytest.mark.parametrize("name", LAUNCHED)
def test_no_secret_is_seen_in_a_process_list(name: str, context: Context) -> None:
    shown = launch(name, context).argv
    for secret in secrets(context.settings):
        assert not [argument for argument in shown if secret in argument]


@pytest.mark.parametrize("name", LAUNCHED)
def test_a_secret_on_disk_is_for_its_owner_alone(name: str, context: Context) -> None:
    launch(name, context)
    for path in (p for p in context.work.rglob("*") if p.is_file()):
        if any(secret in path.read_text(errors="replace") for secret in secrets(context.settings)):
            assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize("name", LAUNCHED)
def test_a_service_writes_in_its_own_folder_only(name: str, context: Context) -> None:
    before = {path for path in context.work.parent.rglob("*") if "made" not in path.parts}
    launch(name, context)
    after = {path for path in context.work.parent.rglob("*") if "made" not in path.parts}
    assert not [path for path in after - before if context.work not in path.parents]


def test_versions_are_those_of_the_parts(context: Context) -> None:
    found: dict[str, str] = {}
    for name in LAUNCHED:
        found.update(find_service(name).versions(context))
    assert found == {part: message for facts in FACTS for part, message in facts.versions.items()}


def test_class_path_has_every_library_once(context: Context) -> None:
    argv = launch("debezium", context).argv
    jars = [Path(jar).name for jar in argv[argv.index("-cp") + 1].split(":")]
    assert [jar for jar in jars if jar.startswith("kafka-clients")] == ["kafka-clients-4.3.1.jar"]
    assert "debezium-connector-mysql-3.6.1.Final.jar" in jars
