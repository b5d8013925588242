"""Tests of every service before it runs: its ports, addresses, secrets, configuration and data, and
what it finds if it starts again."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from racetrack.config import every_setting
from racetrack.stack.service import Context, find_service
from racetrack.stack.services import broker, mysql
from tests.service_facts import FACTS, LAUNCHED

SECRETS = [name for name, field in every_setting().items() if field.annotation is SecretStr]


def with_settings(context: Context, **settings: object) -> Context:
    return replace(context, settings=context.settings.model_copy(update=settings))


@pytest.mark.parametrize("name", LAUNCHED)
def test_a_launch_has_its_ports_keeps_secrets_and_writes_in_its_own_folder(
    name: str, context: Context
) -> None:
    secrets = {name: f"a-{name}-of-its-own" for name in SECRETS}
    context = with_settings(context, **{of: SecretStr(secrets[of]) for of in secrets})
    assert len(secrets) >= 3

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
    for secret in secrets.values():
        assert not [argument for argument in started.argv if secret in argument]
        for path in (path for path, text in texts.items() if secret in text):
            assert path.stat().st_mode & 0o077 == 0, path


def test_versions_are_those_of_the_parts(context: Context) -> None:
    found: dict[str, str] = {}
    for name in LAUNCHED:
        found.update(find_service(name).versions(context))
    assert found == {part: message for facts in FACTS for part, message in facts.versions.items()}


# Not tested is the registry: its server behind nginx gets another free port each time.
SERVICES = [name for name in LAUNCHED if name != "registry"]
LEFT = {
    "mysql": ("data/ibdata1",),
    "broker": ("data/pageviews-0/log",),
    "debezium": ("offsets", "schema-history"),
}


@pytest.mark.parametrize("name", SERVICES)
def test_it_can_be_launched_again_with_its_ports_and_what_it_left(
    name: str, context: Context
) -> None:
    service = find_service(name)
    first = service.launch(context)
    left = {context.work / file: f"left in {file}" for file in LEFT.get(name, ())}
    for file, text in left.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    if name == "broker":
        left[broker.cluster_id_file(context)] = broker.cluster_id_file(context).read_text()
    second = service.launch(context)
    assert (second.argv, second.env) == (first.argv, first.env)
    assert {file: file.read_text() for file in left} == left


def test_a_password_can_hold_anything(context: Context) -> None:
    odd = with_settings(context, mysql_shop_password=SecretStr("a'b\\c")).settings
    assert r"CREATE USER IF NOT EXISTS 'shop'@'%' IDENTIFIED BY 'a\'b\\c'" in mysql.users_sql(odd)


def test_mysql_does_not_run_as_root_and_its_data_is_a_copy_of_what_was_made_once(
    context: Context,
) -> None:
    mysql.SERVICE.launch(context)
    user = mysql.configuration(context).get("user")
    assert user == ("nobody" if os.geteuid() == 0 else None)
    if user:  # only root gives files away
        assert {path.owner() for path in (context.work, *context.work.rglob("*"))} == {user}
    assert (context.work / "data/ibdata1").read_text() == "9.9\n"
    (context.work / "data/ibdata1").write_text("changed")
    assert (context.parts["mysql"] / "made/data/ibdata1").read_text() == "9.9\n"
