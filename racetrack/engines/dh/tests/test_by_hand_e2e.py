"""Tests of a stack that is used by hand: start it, paste the demo, verify the views, stop it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pymysql
import pytest
from confluent_kafka import Producer
from pydeephaven import Session

from racetrack.config import REPO, Settings
from racetrack.engines.dh.connection import connect
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.engines.shared.tests import upsert_e2e
from racetrack.probes.loadgen import Control
from racetrack.stack import processes
from tests.e2e.shared import Door, stack_up

pytestmark = pytest.mark.e2e

WITHIN_S = 600.0


@pytest.fixture(scope="module")
def up(settings: Settings) -> Iterator[Door]:
    """Start the stack as a user does by hand; stop it after all tests of this file."""
    with stack_up("dh", WITHIN_S) as door:
        yield door


@pytest.fixture(scope="module")
def session(up: Door, settings: Settings) -> Iterator[Session]:
    """Open a session, and paste the demo as the README shows."""
    session = connect(settings)
    session.run_script(f"exec(open('{REPO}/scripts/demo.py').read())")
    yield session
    session.close()


def test_status_lists_every_service_each_on_loopback_only(up: Door, settings: Settings) -> None:
    port = DeephavenSettings.of(settings).deephaven_port
    assert f":{port}/ide/" in up.output and "scripts/demo.py" in up.output
    status = Door("race", "status")
    assert status.wait() == 0
    services = ("mysql", "broker", "registry", "debezium", "deephaven", "loadgen")
    for service in services:
        assert f"  {service} " in status.output
    upsert_e2e.check_loopback_only(services, settings)


def test_a_run_beside_it_is_refused(up: Door) -> None:
    run = Door("run_experiment.sh", "dh", "1000", "1", "1", "1.0")
    assert run.wait() == 4
    assert "./race down" in run.output


def test_without_the_demo_there_is_nothing_to_verify(up: Door) -> None:
    door = Door("race", "verify")
    assert door.wait(WITHIN_S) == 1
    assert "scripts/demo.py" in door.output


def test_a_stack_that_is_up_is_right_and_its_load_goes_on(
    session: Session, settings: Settings, wait_until: Callable[..., None]
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
    door = Door("race", "verify")
    assert door.wait(WITHIN_S) == 0, door.output
    assert "every view is right" in door.output
    with Control(settings.reach_address, settings.loadgen_port) as control:
        before = sum(control.stats()["events"]["handed"])
        wait_until(
            lambda: sum(control.stats()["events"]["handed"]) > before + 50, "pageviews again"
        )


@contextmanager
def database(settings: Settings) -> "Iterator[pymysql.cursors.Cursor]":
    """Yield a cursor on the shop's database."""
    connection = pymysql.connect(
        unix_socket=str(processes.work_root(settings.stack_name) / "mysql" / "mysql.sock"),
        user="root",
        password=settings.mysql_root_password.get_secret_value(),
        database="shop",
        autocommit=True,
    )
    with connection, connection.cursor() as cursor:
        yield cursor
