"""End-to-end tests of CDC, from MySQL to the views: NULL, large and odd values, a pause."""
# ruff: noqa: S608 - SQL is put together from numbers only

from typing import Any

import pymysql

from racetrack.config import load
from racetrack.stack import net
from tests.e2e.shared import Door, NothingLeft, ended_well, write_odd_rows
from tests.some_engines import EXAMPLE
from tests.waiting import wait_until

MIB = 1 << 20
SEEDED = 1_000


def as_soon_as_seeded(statement: str) -> None:
    """Execute a statement once the purchases exist, seconds before Connect has started."""

    def done() -> bool:
        try:
            with net.mysql(load()).connect() as shop, shop.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM purchases")
                if cursor.fetchone() != (SEEDED,):
                    return False
                cursor.execute(statement)
                shop.commit()
                return True
        except pymysql.MySQLError:  # MySQL is still starting
            return False

    wait_until(done, "seeded tables", every_s=0.05)


def test_null_stays_null_large_values_pass_and_views_are_right() -> None:
    """They are written both before and after Debezium's snapshot."""
    door = Door("run_experiment.sh", EXAMPLE, "2000", "20", "3", "1.0", "--verify")
    as_soon_as_seeded("UPDATE purchases SET quantity = NULL, status = NULL WHERE id <= 20")
    write_odd_rows(door)
    with net.mysql(load()).connect() as shop, shop.cursor() as cursor:
        for statement in (
            "UPDATE purchases SET quantity = NULL, status = NULL WHERE id BETWEEN 21 AND 40",
            "ALTER TABLE users MODIFY email LONGTEXT",
            f"UPDATE users SET email = REPEAT('x', {int(7.9 * MIB)}) WHERE id = 9",
            f"UPDATE users SET email = REPEAT('é', {MIB}) WHERE id = 10",
        ):
            cursor.execute(statement)
        shop.commit()
    verified = ended_well(door, 400)["verified"]
    # Long values are shortened on the screen.
    assert max(map(len, door.lines)) < 2_000
    assert statuses(verified["cdc"]["tables"]) == {"right"}
    assert statuses(verified["views"]) == {"right"}


def statuses(compared: dict[str, Any]) -> set[str]:
    return {of["status"] for of in compared.values()}


def test_views_are_right_after_the_broker_was_paused(nothing_left: NothingLeft) -> None:
    words = "2000 10 20 1.0 --fault pause:broker@5s+30s --verify"
    door = Door("run_experiment.sh", EXAMPLE, *words.split())
    run = ended_well(door, 400)
    assert statuses(run["verified"]["views"]) == {"right"}
    assert "normal again after" in door.output
    nothing_left()
