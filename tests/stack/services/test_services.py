"""Tests of every service before it runs: it gets its ports and the loopback address, and its
secrets are hidden."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from racetrack.config import Settings, every_setting
from racetrack.stack.service import Context, find_service
from tests.service_facts import FACTS, LAUNCHED

pytestmark = pytest.mark.slow

SECRETS = [name for name, field in every_setting().items() if field.annotation is SecretStr]


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
def test_a_launch_has_its_ports_keeps_secrets_and_writes_in_its_own_folder(
    name: str, context: Context
) -> None:
    def files() -> set[Path]:
        return {path for path in context.work.parent.rglob("*") if "made" not in path.parts}

    before = files()
    started = find_service(name).launch(context)
    assert not [path for path in files() - before if context.work not in path.parents]
    written = [path for path in context.work.rglob("*") if path.is_file()]
    texts = {path: path.read_text(errors="replace") for path in written}
    text = "\n".join([*started.argv, *started.env.values(), *texts.values()])
    for port in find_service(name).ports(context.settings).values():
        assert str(port) in text
    assert "127.0.0.1" in text
    assert "0.0.0.0" not in text  # noqa: S104
    for secret in secrets(context.settings):
        assert not [argument for argument in started.argv if secret in argument]
        for path in (path for path, text in texts.items() if secret in text):
            assert path.stat().st_mode & 0o077 == 0, path


def test_versions_are_those_of_the_parts(context: Context) -> None:
    found: dict[str, str] = {}
    for name in LAUNCHED:
        found.update(find_service(name).versions(context))
    assert found == {part: message for facts in FACTS for part, message in facts.versions.items()}


def test_class_path_has_every_library_once(context: Context) -> None:
    argv = find_service("debezium").launch(context).argv
    jars = [Path(jar).name for jar in argv[argv.index("-cp") + 1].split(":")]
    assert [jar for jar in jars if jar.startswith("kafka-clients")] == ["kafka-clients-4.3.1.jar"]
    assert "debezium-connector-mysql-3.6.1.Final.jar" in jars
