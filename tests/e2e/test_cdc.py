"""End-to-end tests of CDC, from MySQL to the views: NULL, large and odd values, TRUNCATE, a
pause."""
# ruff: noqa: S608 - SQL is put together from numbers only

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from racetrack.config import load
from racetrack.stack import net
from tests.e2e.shared import Door, ended_well, run_folder, write_odd_rows
from tests.run_json import read_run
from tests.some_engines import EXAMPLE

pytestmark = pytest.mark.e2e

MIB = 1 << 20
SEEDED_WITHIN_S = 60.0
SEEDED = 1_000
# Time from a change that Debezium can't deliver until the run ends.
ENDS_WITHIN_S = 40.0
NothingLeft = Callable[[], None]


def in_shop(*statements: str) -> None:
    """Execute statements as the shop's user."""
    with net.mysql(load()).connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def as_soon_as_seeded(statement: str) -> None:
    """Execute a statement once the purchases exist, seconds before Connect has started."""
    give_up = time.monotonic() + SEEDED_WITHIN_S
    while time.monotonic() < give_up:
        try:
            with net.mysql(load()).connect() as shop, shop.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM purchases")
                if cursor.fetchone() == (SEEDED,):
                    cursor.execute(statement)
                    shop.commit()
                    return
        except pymysql.MySQLError:  # MySQL is still starting
            pass
        time.sleep(0.05)
    raise AssertionError("the tables were not seeded in time")


@pytest.fixture(scope="module")
def changed() -> Iterator[dict[str, Any]]:
    """Yield the record of a verified run with large and odd values, and with NULL, written both
    before and after Debezium's snapshot."""
    door = Door("run_experiment.sh", EXAMPLE, "2000", "20", "3", "1.0", "--verify")
    as_soon_as_seeded("UPDATE purchases SET quantity = NULL, status = NULL WHERE id <= 20")
    write_odd_rows(door)
    in_shop(
        "UPDATE purchases SET quantity = NULL, status = NULL WHERE id BETWEEN 21 AND 40",
        "ALTER TABLE users MODIFY email LONGTEXT",
        f"UPDATE users SET email = REPEAT('x', {int(7.9 * MIB)}) WHERE id = 9",
        f"UPDATE users SET email = REPEAT('é', {MIB}) WHERE id = 10",
    )
    ended_well(door, 400)
    # Long values are shortened on the screen.
    assert max(map(len, door.lines)) < 2_000
    yield read_run(run_folder(door.output))


def test_null_stays_null_large_values_pass_and_views_are_right(changed: dict[str, Any]) -> None:
    assert statuses(changed["verified"]["cdc"]["tables"]) == {"right"}
    assert statuses(changed["verified"]["views"]) == {"right"}


def statuses(compared: dict[str, Any]) -> set[str]:
    return {of["status"] for of in compared.values()}


def test_what_debezium_does_not_deliver_is_not_blamed_on_the_engine(
    nothing_left: NothingLeft,
) -> None:
    door = Door("run_experiment.sh", EXAMPLE, "1000", "20", "3", "1.0", "--verify")
    door.until(r"^\[4/")
    in_shop("TRUNCATE TABLE purchases")
    assert door.wait(400) == 1, door.output
    verified = read_run(run_folder(door.output))["verified"]
    assert verified["cdc"]["tables"]["purchases"]["status"] == "wrong"
    assert "right" in statuses(verified["views"])
    assert re.search(r"CDC delivered .* differ", door.output), door.output
    assert "TRUNCATE" in door.output
    nothing_left()


def test_a_value_that_debezium_can_not_send_ends_the_run_with_its_reason(
    nothing_left: NothingLeft,
) -> None:
    door = Door("run_experiment.sh", EXAMPLE, "1000", "60", "3", "1.0")
    door.until(r"^\[4/")
    in_shop(
        "ALTER TABLE users MODIFY email LONGTEXT",
        f"UPDATE users SET email = REPEAT('x', {12 * MIB}) WHERE id = 9",
    )
    sent_s = time.monotonic()
    assert door.wait() == 1, door.output
    assert time.monotonic() - sent_s < ENDS_WITHIN_S
    outcome = read_run(run_folder(door.output))["outcome"]
    assert outcome.startswith("Debezium's task failed:")
    assert "RecordTooLargeException" in outcome
    nothing_left()


def test_views_are_right_after_the_broker_was_paused(nothing_left: NothingLeft) -> None:
    words = "2000 10 20 1.0 --fault pause:broker@5s+30s --verify"
    door = Door("run_experiment.sh", EXAMPLE, *words.split())
    run = ended_well(door, 400)
    assert statuses(run["verified"]["views"]) == {"right"}
    assert "normal again after" in door.output
    nothing_left()
