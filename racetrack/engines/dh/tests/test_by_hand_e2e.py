"""Tests of a stack that is used by hand: start it, paste the demo, change the rate with nc, verify
the views, and stop it. Some tests change rows where the engine can't see it, and expect the
verification to fail."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest
from confluent_kafka import Producer
from pydeephaven import Session

from racetrack.config import REPO, Settings
from racetrack.engines.dh.connection import connect
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.broker import TopicOffsets
from racetrack.probes.loadgen import Control
from racetrack.probes.write_check import TOPIC
from racetrack.stack import processes
from racetrack.verify.verification import Limits
from tests.cli.conftest import invoke
from tests.e2e.shared import Door, nc, run_folder, stack_up

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


def test_it_wrote_a_record_of_its_own(up: Door, settings: Settings) -> None:
    broker = TopicOffsets(KafkaEndpoint(f"{settings.reach_address}:{settings.kafka_port}"), TOPIC)
    assert broker.end_offsets() == [1]


def test_status_lists_every_service_each_on_loopback_only(up: Door, settings: Settings) -> None:
    port = DeephavenSettings.of(settings).deephaven_port
    assert f":{port}/ide/" in up.output and "scripts/demo.py" in up.output
    status = Door("race", "status")
    assert status.wait() == 0
    for service in ("mysql", "broker", "registry", "debezium", "deephaven", "loadgen"):
        assert f"  {service} " in status.output
    pids = {int(word) for word in status.output.replace(",", " ").split() if word.isdigit()}
    addresses = {
        connection.laddr.ip.removeprefix("::ffff:")
        for connection in psutil.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.pid in pids
    }
    assert addresses
    assert [each for each in addresses if not ip_address(each).is_loopback] == []


def test_a_run_beside_it_is_refused(up: Door) -> None:
    run = Door("run_experiment.sh", "dh", "1000", "1", "1", "1.0")
    assert run.wait() == 4
    assert "./race down" in run.output


def test_without_the_demo_there_is_nothing_to_verify(up: Door) -> None:
    door = Door("race", "verify")
    assert door.wait(WITHIN_S) == 1
    assert "scripts/demo.py" in door.output


def test_nc_changes_the_rate(up: Door, settings: Settings) -> None:
    shown = nc(settings, "set events_per_second 500", "get events_per_second")
    assert (shown[0], shown[-1]) == ("LOADGEN Connected.", "Goodbye.")
    assert "500" in shown[2]


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
    assert wrong(found_by(door.output)) == set()
    with Control(settings.reach_address, settings.loadgen_port) as control:
        before = sum(control.stats()["events"]["handed"])
        wait_until(
            lambda: sum(control.stats()["events"]["handed"]) > before + 50, "pageviews again"
        )


def test_a_change_that_cdc_did_not_deliver_is_not_the_engine_s(
    session: Session, settings: Settings
) -> None:
    with database(settings, unseen=True) as cursor:
        cursor.execute("UPDATE purchases SET purchase_price = purchase_price + 1 WHERE id = 20")
        cursor.execute("DELETE FROM purchases WHERE id = 21")
    # CDC never delivers these changes, however long the verification waits.
    result = invoke("verify", limits=Limits(drain_within_s=6.0, again_within_s=6.0))
    found = found_by(result.output)
    assert result.exit_code == 1
    assert wrong(found) == set(), "the engine is right about what CDC delivered"
    purchases = found["cdc"]["tables"]["purchases"]
    assert (purchases["extra"], purchases["different"], purchases["missing"]) == (1, 1, 0)
    assert "CDC delivered 2 rows that differ" in result.output
    of = {finding["finding"]: finding for finding in purchases["first"]}
    assert of["different"]["source"]["id"] == of["different"]["engine"]["id"] == 20
    assert of["extra"]["engine"]["id"] == 21
    assert "different,20,20," in (folder_of(result.output) / "cdc_purchases.csv").read_text()


def folder_of(output: str) -> Path:
    """Return the folder that the output of a verification names."""
    (line,) = [line for line in output.splitlines() if line.startswith("  logs  ")]
    return REPO / line.split()[-1]


def found_by(output: str) -> dict[str, Any]:
    """Return the record of a verification, given its output."""
    found: dict[str, Any] = json.loads((folder_of(output) / "verified.json").read_text())
    return found


def wrong(found: dict[str, Any]) -> set[str]:
    return {name for name, view in found["views"].items() if view["status"] != "right"}


@contextmanager
def database(settings: Settings, *, unseen: bool = False) -> "Iterator[pymysql.cursors.Cursor]":
    """Yield a cursor on the shop's database. With `unseen`, its changes are left out of the binary
    log, so that CDC and the engine never get them."""
    connection = pymysql.connect(
        unix_socket=str(processes.work_root(settings.stack_name) / "mysql" / "mysql.sock"),
        user="root",
        password=settings.mysql_root_password.get_secret_value(),
        database="shop",
        autocommit=True,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(f"SET SESSION sql_log_bin = {int(not unseen)}")
        yield cursor


def test_the_server_logs_its_cycles(experiment: Door) -> None:
    log = (run_folder(experiment.output) / "stack" / "deephaven.log").read_text()
    assert "cycleTime=" in log
