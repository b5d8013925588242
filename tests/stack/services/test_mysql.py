"""Tests of MySQL's configuration and users."""

import os
from dataclasses import replace

import pytest
from pydantic import SecretStr

from racetrack.errors import RacetrackError
from racetrack.stack.service import Context
from racetrack.stack.services import mysql


def test_a_socket_path_that_is_too_long(context: Context) -> None:
    deep = replace(context, work=context.work / ("x" * 107))
    with pytest.raises(RacetrackError, match=r"107 bytes at most.*STACK_NAME"):
        mysql.configuration(deep)


def test_a_password_can_hold_anything(context: Context) -> None:
    odd = context.settings.model_copy(update={"mysql_shop_password": SecretStr("a'b\\c")})
    assert r"CREATE USER IF NOT EXISTS 'shop'@'%' IDENTIFIED BY 'a\'b\\c'" in mysql.users_sql(odd)


def test_debezium_may_read_and_no_more(context: Context) -> None:
    grants = [line for line in mysql.users_sql(context.settings) if line.startswith("GRANT")]
    rights = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES"
    assert grants == [
        "GRANT ALL ON shop.* TO 'shop'@'%'",
        f"GRANT {rights} ON *.* TO 'debezium'@'%'",
    ]


def test_it_does_not_run_as_root(context: Context) -> None:
    user = mysql.configuration(context).get("user")
    assert user == ("nobody" if os.geteuid() == 0 else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_all_of_its_folder_belongs_to_whom_it_becomes(context: Context) -> None:
    mysql.SERVICE.launch(context)
    assert {path.owner() for path in (context.work, *context.work.rglob("*"))} == {"nobody"}


def test_its_data_is_a_copy_of_what_was_made_once(context: Context) -> None:
    mysql.SERVICE.launch(context)
    assert (context.work / "data/ibdata1").read_text() == "9.9\n"
    (context.work / "data/ibdata1").write_text("changed")
    assert (context.parts["mysql"] / "made/data/ibdata1").read_text() == "9.9\n"
