"""The stack for playing by hand: up, the demo pasted, the rate changed with nc, status, down."""

import urllib.request
from collections.abc import Callable, Iterator
from ipaddress import ip_address

import pytest
from pydeephaven import Session

from engines.dh import engine as dh
from engines.dh.knobs import Knobs
from racetrack.probes.broker import TopicOffsets
from racetrack.probes.own_record import TOPIC
from racetrack.settings import REPO, Settings
from tests.e2e.shared import Door, nc

pytestmark = pytest.mark.e2e

# All the demo has.
TABLES = (
    *("users", "items", "purchases", "pageviews", "pageviews_stg"),
    *("purchases_by_item", "pageviews_by_item", "item_summary"),
    *("top_viewed_items", "top_converting_items", "profile_views_per_minute_last_10"),
    *("profile_views", "profile_views_enriched"),
    *("dd_flagged_profiles", "dd_flagged_profile_view"),
    *("high_value_users", "hvu_test", "pageviews_summary", "pageviews_progress"),
)


@pytest.fixture(scope="module")
def up(settings: Settings) -> Iterator[Door]:
    """The stack, put up by hand, and taken down after all tests of this file."""
    door = Door("race", "up", "dh")
    try:
        assert door.wait() == 0, door.output
        yield door
    finally:
        down = Door("race", "down")
        assert down.wait() == 0, down.output


@pytest.fixture(scope="module")
def session(up: Door, settings: Settings) -> Iterator[Session]:
    """A session on the server in which the demo was pasted as the README says."""
    session = dh.connect(settings)
    session.run_script(f"exec(open('{REPO}/scripts/demo.py').read())")
    yield session
    session.close()


def test_it_says_where_to_play(up: Door, settings: Settings) -> None:
    assert f":{Knobs.of(settings).deephaven_port}/ide/" in up.output
    assert "scripts/demo.py" in up.output


def test_it_wrote_a_record_of_its_own(up: Door, settings: Settings) -> None:
    broker = TopicOffsets(f"{settings.reach_address}:{settings.kafka_port}", TOPIC)
    assert broker.end_offsets() == [1]


def test_status_knows_every_service(up: Door) -> None:
    status = Door("race", "status")
    assert status.wait() == 0
    for service in ("mysql", "broker", "registry", "debezium", "deephaven", "loadgen"):
        assert f"  {service} " in status.output


def test_a_run_beside_it_is_refused(up: Door) -> None:
    run = Door("run_experiment.sh", "dh", "1000", "1", "1", "1.0")
    assert run.wait() == 4
    assert "./race down" in run.output


def test_the_ide_is_served(up: Door, settings: Settings) -> None:
    url = f"http://{settings.reach_address}:{Knobs.of(settings).deephaven_port}/ide/"
    with urllib.request.urlopen(url, timeout=10) as page:  # our own server
        assert "Deephaven" in page.read().decode()


def test_nc_changes_the_rate(up: Door, settings: Settings) -> None:
    shown = nc(settings, "set pageviews_per_second 500", "get pageviews_per_second")
    assert shown[0] == "LOADGEN Connected."
    assert "50" in shown[1]
    assert "500" in shown[1]
    assert "500" in shown[2]
    assert shown[-1] == "Goodbye."


@pytest.mark.parametrize("table", TABLES)
def test_every_table_of_the_demo_has_rows(
    session: Session, wait_until: Callable[..., None], table: str
) -> None:
    wait_until(lambda: session.open_table(table).to_arrow().num_rows > 0, f"rows in {table}")


def test_every_service_listens_on_loopback_only(up: Door) -> None:
    import psutil

    status = Door("race", "status")
    status.wait()
    pids = {int(word) for word in status.output.replace(",", " ").split() if word.isdigit()}
    addresses = {
        connection.laddr.ip.removeprefix("::ffff:")
        for connection in psutil.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.pid in pids
    }
    assert addresses
    assert [each for each in addresses if not ip_address(each).is_loopback] == []
