"""The views against their sources on the real stack: right after rows have changed and gone, and
found wrong where the truth is another than what the engine was told."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest
from confluent_kafka import Producer

from engines.dh import engine as dh
from racetrack.probes.loadgen import Control
from racetrack.settings import REPO, Settings
from racetrack.stack.native import leftovers
from tests.e2e.shared import Door, ended_well, run_folder
from tests.run_json import read_run
from tests.some_engines import EXAMPLE
from workloads.shop.catalogue import VIEWS

pytestmark = pytest.mark.e2e

CHANGES = {"UPDATES_PER_SECOND": "30", "DELETES_PER_SECOND": "5"}
# A verification of what is wrong waits a minute for it to come right.
WITHIN_S = 600.0
NAMES = {view.name for view in VIEWS}


@pytest.fixture(scope="module")
def finished() -> Iterator[Door]:
    """A verified experiment in which prices, flags and purchases change, and purchases go."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CHANGES.items():
            patch.setenv(name, value)
        door = Door("run_experiment.sh", EXAMPLE, "2000", "10", "10", "1.0", "--verify")
        ended_well(door, WITHIN_S)
    yield door


def test_every_view_is_right_after_updates_and_deletions(finished: Door) -> None:
    run = read_run(run_folder(finished.output))
    verified = run["verified"]
    assert {name: view["status"] for name, view in verified["views"].items()} == dict.fromkeys(
        NAMES, "right"
    )
    assert verified["drained_after_s"] < verified["drain_within_s"]
    assert verified["end_offsets"] == run["measured"]["end_offsets"]
    assert verified["source_rows"]["pageviews"] == sum(verified["end_offsets"]) > 40_000
    for name, view in verified["views"].items():
        assert view["compared"] > 0, name
    # The shop began with 1,000 purchases, and three a second came.
    assert verified["source_rows"]["purchases"] < 1_000
    assert "views       17 of 17 right" in finished.output


def test_it_is_a_step_of_its_own(finished: Door) -> None:
    assert "[6/7] compare every view with the sources" in finished.output


@pytest.fixture(scope="module")
def up() -> Iterator[Door]:
    """A stack that was put up by hand; the demo is not loaded yet."""
    door = Door("race", "up", EXAMPLE)
    try:
        assert door.wait(WITHIN_S) == 0, door.output
        yield door
    finally:
        down = Door("race", "down")
        assert down.wait() == 0, down.output


@pytest.fixture(scope="module")
def loaded(up: Door, settings: Settings) -> Iterator[None]:
    """The demo, pasted as the README says."""
    session = dh.connect(settings)
    session.run_script(f"exec(open('{REPO}/scripts/demo.py').read())")
    yield
    session.close()


def verify() -> tuple[int, Door, dict[str, Any]]:
    """`./race verify`: its exit code, what it said, and what it left in its folder."""
    door = Door("race", "verify")
    code = door.wait(WITHIN_S)
    folders = [line.split()[-1] for line in door.lines if line.startswith("  logs  ")]
    found = json.loads((REPO / folders[0] / "verified.json").read_text()) if folders else {}
    return code, door, found


def wrong(found: dict[str, Any]) -> set[str]:
    return {name for name, view in found["views"].items() if view["status"] != "right"}


def test_without_the_demo_it_says_so(up: Door) -> None:
    code, door, _ = verify()
    assert code == 1
    assert "the demo is not loaded" in door.output
    assert "scripts/demo.py" in door.output


def test_a_stack_that_is_up_is_right_and_its_load_goes_on(
    loaded: None, settings: Settings, wait_until: Callable[..., None]
) -> None:
    producer = Producer({"bootstrap.servers": f"{settings.reach_address}:{settings.kafka_port}"})
    for flag in ("17", '"18"', "no id"):
        producer.produce("dd_flagged_profiles", flag.encode())
    producer.flush()
    with database(settings) as cursor:
        cursor.execute("UPDATE purchases SET purchase_price = 2 * purchase_price WHERE id = 11")
        cursor.execute("UPDATE purchases SET item_id = 7 WHERE id = 12")
        cursor.execute("DELETE FROM purchases WHERE id IN (13, 14)")
        cursor.execute("UPDATE users SET email = NULL WHERE id = 1")
        cursor.execute("DELETE FROM items WHERE id = 5")
    code, door, found = verify()
    assert code == 0, door.output
    assert wrong(found) == set()
    with Control(settings.reach_address, settings.loadgen_port) as control:
        before = sum(control.stats()["pageviews"]["handed"])
        wait_until(
            lambda: sum(control.stats()["pageviews"]["handed"]) > before + 50, "pageviews again"
        )


def test_a_truth_that_the_engine_was_not_told_is_found(loaded: None, settings: Settings) -> None:
    with database(settings, unseen=True) as cursor:
        cursor.execute("UPDATE purchases SET purchase_price = purchase_price + 1 WHERE id = 20")
        cursor.execute("DELETE FROM purchases WHERE id = 21")
        cursor.execute("SELECT item_id FROM purchases WHERE id = 20")
        ((item,),) = cursor.fetchall()
    code, door, found = verify()
    assert code == 1
    assert wrong(found) >= {"purchases", "purchases_by_item", "item_summary"}
    assert not wrong(found) & {"users", "items", "pageviews_by_item", "profile_views"}
    assert "WRONG       purchases: 1 extra, 1 different" in door.output
    of = {finding["finding"]: finding for finding in found["views"]["purchases"]["first"]}
    assert of["different"]["source"]["id"] == of["different"]["engine"]["id"] == 20
    assert of["extra"]["engine"]["id"] == 21
    items = [finding["source"]["item_id"] for finding in found["views"]["item_summary"]["first"]]
    assert item in items
    raw = next(Path(line.split()[-1]) for line in door.lines if line.startswith("  logs  "))
    assert "different,20,20," in (REPO / raw / "purchases.csv").read_text()
    assert found["drained_after_s"] is None


@contextmanager
def database(settings: Settings, *, unseen: bool = False) -> "Iterator[pymysql.cursors.Cursor]":
    """A cursor on the shop; with `unseen`, its changes are kept from everyone downstream."""
    connection = pymysql.connect(
        unix_socket=str(leftovers.work_root(settings.stack_name) / "mysql" / "mysql.sock"),
        user="root",
        password=settings.mysql_root_password.get_secret_value(),
        database="shop",
        autocommit=True,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(f"SET SESSION sql_log_bin = {int(not unseen)}")
        yield cursor
