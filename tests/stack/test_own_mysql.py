"""Tests of a MySQL that the user provides: a real one, with TLS, a password, and few rights."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import pytest

from racetrack.config import Settings, load
from racetrack.errors import SetupError, UsageError
from racetrack.mysql_endpoint import MysqlEndpoint
from racetrack.run.checks import services_of
from racetrack.stack import net
from racetrack.stack.contract import Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.own_mysql import ELSEWHERE
from racetrack.stack.provided import Provided, remove_of_killed
from racetrack.stack.service import Context
from racetrack.stack.services import debezium
from racetrack.verify.tables import statements_without_messages
from tests.run.fakes import FakeEngine
from tests.secured_mysql import PASSWORD, RIGHTS, SecuredMysql, secured_mysql

URL = {"MYSQL_URL": "mysql://me@db.example:3307"}


@pytest.fixture(scope="module")
def mysql() -> Iterator[SecuredMysql]:
    with secured_mysql() as running:
        yield running


def settings(mysql: SecuredMysql, **changed: str) -> Settings:
    return load({**mysql.settings(), **changed})


def reasons(used: Settings) -> list[str]:
    """Return the reasons of a check that fails, one per line."""
    with pytest.raises(SetupError) as refused:
        ELSEWHERE.check(used)
    assert PASSWORD not in str(refused.value)
    return [line.strip() for line in str(refused.value).splitlines()[1:]]


@pytest.mark.slow
def test_the_check_lists_what_is_possible_and_leaves_nothing(mysql: SecuredMysql) -> None:
    passed = ELSEWHERE.check(settings(mysql))
    assert passed.operations[-1] == "remove the database" and "lock tables" in passed.operations
    assert passed.clock and abs(passed.clock.offset_ms) < 50
    assert mysql.databases() == set()


@pytest.mark.slow
@pytest.mark.parametrize("right", RIGHTS)
def test_a_missing_right_is_named(mysql: SecuredMysql, right: str) -> None:
    mysql.allow(each for each in RIGHTS if each != right)
    try:
        (line,) = reasons(settings(mysql))
    finally:
        mysql.allow(RIGHTS)
    assert line.startswith("MYSQL_URL: can't ") and f"GRANT {right} TO" in line
    assert mysql.databases() == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"MYSQL_PASSWORD_FILE": ""}, "MYSQL_URL: can't log in: Access denied"),
        ({"MYSQL_SSL_CA_LOCATION": "/etc/hostname"}, "MYSQL_SSL_CA_LOCATION: can't log in: "),
        ({"MYSQL_SSL_CA_LOCATION": "/nowhere"}, "MYSQL_SSL_CA_LOCATION: can't log in: No such"),
        ({"MYSQL_URL": "mysql://race@localhost:1"}, "MYSQL_URL: can't log in: Can't connect"),
        ({"MYSQL_URL": "mysql://race@none.invalid"}, "MYSQL_URL: can't log in: Can't connect"),
    ],
)
def test_a_wrong_setting_is_named_with_the_answer(
    mysql: SecuredMysql, changed: dict[str, str], reason: str
) -> None:
    (line,) = reasons(settings(mysql, **changed))
    assert line.startswith(reason)


@pytest.mark.slow
def test_a_certificate_of_another_host_is_refused(mysql: SecuredMysql) -> None:
    url = mysql.settings()["MYSQL_URL"].replace("localhost", "127.0.0.2")
    (line,) = reasons(settings(mysql, MYSQL_URL=url))
    assert line.startswith("MYSQL_SSL_CA_LOCATION: can't log in: ")


@pytest.mark.slow
def test_a_log_without_whole_rows_is_refused(mysql: SecuredMysql) -> None:
    mysql.execute("SET GLOBAL binlog_row_image = MINIMAL")
    try:
        (line,) = reasons(settings(mysql))
    finally:
        mysql.execute("SET GLOBAL binlog_row_image = FULL")
    assert line.startswith("MYSQL_URL: the server has binlog_row_image=MINIMAL")


@pytest.mark.slow
def test_only_the_run_s_database_is_removed(
    mysql: SecuredMysql, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, others = settings(mysql), "racetrack_20200101_000000_1"
    mysql.execute(f"CREATE DATABASE {others}", f"CREATE DATABASE {RUN_NAME}")
    try:
        (line,) = ELSEWHERE.remove(used, RUN_NAME)
        assert line == f"removed the database {RUN_NAME} from localhost:{mysql.port}"
        assert mysql.databases() == {others}
        assert ELSEWHERE.remove(used, RUN_NAME) == ELSEWHERE.remove(used, "") == ()
        for name, value in mysql.settings().items():
            monkeypatch.setenv(name, value)
        provided = Provided(load())
        assert provided.check(["mysql", "debezium"], print) == ["debezium"]
        assert "MySQL" in str(provided.clocks["mysql"])
        mysql.execute(f"CREATE DATABASE {RUN_NAME}")
        (line,) = remove_of_killed(provided.environment())
        assert line.startswith("removed the database")
    finally:
        mysql.execute(f"DROP DATABASE {others}")


@pytest.mark.slow
def test_statements_of_others_and_of_earlier_are_not_the_run_s(mysql: SecuredMysql) -> None:
    others, table = "racetrack_20200101_000000_2", "users (id INT)"
    stack = cast(Stack, OnlyMysql(net.mysql(settings(mysql))))
    mysql.execute(
        f"CREATE DATABASE {RUN_NAME}",
        f"CREATE TABLE {RUN_NAME}.{table}",
        f"TRUNCATE {RUN_NAME}.users",
        "FLUSH BINARY LOGS",
        f"DROP DATABASE {RUN_NAME}",
        f"CREATE DATABASE {others}",
        f"CREATE TABLE {others}.{table}",
        f"CREATE DATABASE {RUN_NAME}",
        f"CREATE TABLE {RUN_NAME}.{table}",
        f"TRUNCATE {others}.users",
        "FLUSH BINARY LOGS",
    )
    try:
        assert statements_without_messages(stack, ["users"]) == []
        mysql.execute(f"USE {RUN_NAME}", "TRUNCATE users")
        (found,) = statements_without_messages(stack, ["users"])
        assert found.startswith("TRUNCATE users ")
    finally:
        mysql.execute(f"DROP DATABASE {RUN_NAME}", f"DROP DATABASE {others}")


@dataclass(frozen=True)
class OnlyMysql:
    """A stack of which only MySQL is used."""

    mysql: MysqlEndpoint

    @property
    def endpoints(self) -> Self:
        return self


def test_what_can_t_be_removed_is_listed() -> None:
    (line,) = ELSEWHERE.remove(load({"MYSQL_URL": "mysql://me@localhost:1"}), RUN_NAME)
    assert line.startswith("not removed from localhost:1: ")
    assert f"DROP DATABASE {RUN_NAME};" in line


def test_clients_use_the_run_s_database_there(context: Context, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    outside = load({**URL, "MYSQL_PASSWORD_FILE": str(tmp_path / "password")})
    there = Context(outside, context.work, context.parts)
    connector = debezium.connector_config(there)
    assert (connector["database.hostname"], connector["database.port"]) == ("db.example", "3307")
    assert connector["database.include.list"] == RUN_NAME
    assert connector["table.include.list"].endswith(f",{RUN_NAME}.users")
    assert connector["transforms.rename.replacement"] == "$1shop$2"
    assert PASSWORD not in str(connector)
    mysql = net.mysql(outside)
    assert (mysql.database, mysql.writer_password) == (RUN_NAME, PASSWORD)
    assert PASSWORD not in repr(mysql)


def test_the_stack_starts_no_mysql_then() -> None:
    assert "mysql" in services_of(FakeEngine(), load())
    assert "mysql" not in services_of(FakeEngine(), load(URL))


@pytest.mark.parametrize("url", ["db.example:3306", "mysql://db.example", "mysql://me:word@db"])
def test_a_malformed_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="MYSQL_URL"):
        load({"MYSQL_URL": url})
