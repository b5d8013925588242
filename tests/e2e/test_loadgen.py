"""End-to-end tests of the load generator with a real broker and a real MySQL, which all tests
share, including the load of earlier tests."""

import contextlib
import re
import socket
from collections import Counter

import pytest

from racetrack.clock import now_ms
from racetrack.workloads.shop.load.tracers import Reserved
from racetrack.workloads.shop.settings import ShopSettings
from tests.e2e.loadgen_stack import LoadgenStack, Message
from tests.e2e.shared import WaitUntil

CHANNELS = {"organic search", "paid search", "referral", "social", "display"}


@pytest.fixture(scope="module")
def first_second(loadgen: LoadgenStack) -> list[Message]:
    """Return all pageviews since the generator's start: at least a thousand in every partition."""
    loadgen.rates(20_000)
    loadgen.watch(0.5)
    handed, published = loadgen.pause()
    assert handed == published
    assert min(handed) > 1000
    return loadgen.read([0] * len(handed))


def test_the_shop_is_seeded(loadgen: LoadgenStack) -> None:
    ids = {t: loadgen.sql(f"SELECT id FROM {t} ORDER BY id") for t in ("users", "items")}  # noqa: S608
    settings = loadgen.settings
    shop = ShopSettings.of(settings)
    reserved = Reserved(shop.shop_users, shop.shop_items, settings.events_partitions)
    assert (reserved.users, reserved.items) == (10_000, 1_000)
    assert ids["users"] == [(n,) for n in range(1, reserved.last_user + 1)]
    assert ids["items"] == [(n,) for n in range(1, reserved.last_item + 1)]
    assert loadgen.sql("SELECT COUNT(*) FROM purchases")[0][0] >= 1
    assert "Initializing shop database DONE" in loadgen.log()


def test_a_pageview_is_as_engines_expect_it(first_second: list[Message]) -> None:
    home: dict[str, int] = {}
    assert in_order(first_second)
    for message in first_second:
        assert set(message.value) == {"user_id", "url", "channel", "received_at"}
        user, url, received_at_ms = (message.value[k] for k in ("user_id", "url", "received_at"))
        assert message.key == str(user)
        assert 1 <= user <= 10_000
        assert home.setdefault(message.key, message.partition) == message.partition
        page = re.fullmatch(r"/(products|profiles)/([1-9][0-9]*)", url)
        assert page and int(page[2]) <= {"products": 1_000, "profiles": 10_000}[page[1]], url
        assert type(received_at_ms) is int
        assert abs(received_at_ms - message.at_ms) < 60_000  # in milliseconds, by the same clock
    assert {message.value["channel"] for message in first_second} == CHANNELS
    # The expected number of different users in so many draws.
    users = 10_000
    expected = users * (1 - (1 - 1 / users) ** len(first_second))
    assert len(home) == pytest.approx(expected, rel=0.03)


def test_purchases_pageviews_take_their_place_in_the_order(
    loadgen: LoadgenStack, wait_until: WaitUntil
) -> None:
    _, since = loadgen.pause()
    done = loadgen.stats()["purchases"]["done"]
    loadgen.rates(4_000, purchases=50)
    wait_until(lambda: loadgen.stats()["purchases"]["done"] >= done + 250, "250 purchases")
    loadgen.rates(500, purchases=200)
    wait_until(lambda: loadgen.stats()["purchases"]["done"] >= done + 650, "650 purchases")
    handed, published = loadgen.pause()
    assert handed == published
    assert in_order(loadgen.read(since))


def test_a_purchase_is_a_row_and_a_pageview(loadgen: LoadgenStack, wait_until: WaitUntil) -> None:
    _, since = loadgen.pause()
    ((last_id,),) = loadgen.sql("SELECT MAX(id) FROM purchases")
    done = loadgen.stats()["purchases"]["done"]
    loadgen.rates(0, purchases=100)
    wait_until(lambda: loadgen.stats()["purchases"]["done"] >= done + 50, "50 purchases")
    handed, published = loadgen.pause()
    assert handed == published
    purchases = loadgen.stats()["purchases"]
    assert purchases["due"] == purchases["done"]
    rows = loadgen.sql(f"SELECT user_id, item_id FROM purchases WHERE id > {last_id}")  # noqa: S608
    viewed = Counter((m.value["user_id"], m.value["url"]) for m in loadgen.read(since))
    assert viewed == Counter((user, f"/products/{item}") for user, item in rows)
    assert viewed.total() == purchases["done"] - done


def in_order(messages: list[Message]) -> bool:
    """Return whether due times never decrease within a partition."""
    newest: dict[int, int] = {}
    for message in messages:
        if message.value["received_at"] < newest.get(message.partition, 0):
            return False
        newest[message.partition] = message.value["received_at"]
    return True


def test_a_new_rate_holds_within_50_ms_and_is_kept_beside_clients_of_all_kinds(
    loadgen: LoadgenStack,
) -> None:
    """On any machine, due pageviews follow the clock, and all are sent with their due times.
    bench/loadgen.sh measures how late they are sent."""
    _, since = loadgen.pause()
    loadgen.rates(1_000)
    loadgen.watch(0.5)
    sent_ms = now_ms()
    loadgen.ask("set events_per_second 20000")
    answered_ms = now_ms()
    with contextlib.ExitStack() as crowd:
        address = (loadgen.settings.bind_address, loadgen.settings.loadgen_port)
        for _ in range(100):
            client = crowd.enter_context(socket.create_connection(address, timeout=60))
            client.sendall(b"stats\n")
        with contextlib.suppress(OSError):  # it reads no answers, and is disconnected
            client.sendall(b"stats\n" * 100_000)
        lines = loadgen.watch(3)[2:]  # the first 50 ms may be at the old rate
    first_ms, last_ms = lines[0]["now_ms"], lines[-1]["now_ms"]
    due = sum(lines[-1]["events"]["due"]) - sum(lines[0]["events"]["due"])
    # Allow for times in whole milliseconds: 1 of 2,800 is 0.04 %.
    assert due / (last_ms - first_ms) * 1000 == pytest.approx(20_000, rel=0.001)
    handed, published = loadgen.pause()
    assert handed == published
    assert sum(loadgen.stats()["events"]["refused"]) == 0
    messages = loadgen.read(since)

    def due_in(start_ms: int, length_ms: int, partition: int | None = None) -> int:
        window = range(start_ms, start_ms + length_ms)
        mine = [m for m in messages if partition in (None, m.partition)]
        return sum(m.value["received_at"] in window for m in mine)

    # Allow for a fraction of a pageview per partition at either end, and for a millisecond between
    # the two clocks.
    assert due_in(first_ms, last_ms - first_ms) == pytest.approx(due, abs=40)
    assert due_in(sent_ms - 300, 300) == pytest.approx(300, abs=13)
    assert due_in(answered_ms + 50, 300) == pytest.approx(6_000, abs=32)
    for partition in range(len(handed)):
        before = due_in(sent_ms - 300, 300, partition)
        assert due_in(answered_ms + 50, 300, partition) == pytest.approx(before * 20, rel=0.1)


def test_updates_and_deletions_change_what_is_there(
    loadgen: LoadgenStack, wait_until: WaitUntil
) -> None:
    loadgen.rates(0)
    vips = dict(loadgen.sql("SELECT id, is_vip FROM users"))
    prices = dict(loadgen.sql("SELECT id, price FROM items"))
    paid = dict(loadgen.sql("SELECT id, purchase_price FROM purchases"))
    loadgen.ask("set updates_per_second 60")
    loadgen.ask("set deletes_per_second 20")
    wait_until(lambda: loadgen.stats()["updates"]["done"] >= 60, "60 updates")
    wait_until(lambda: loadgen.stats()["deletes"]["done"] >= 20, "20 deletions")
    with loadgen.control() as control:
        control.pause()
        control.settled_counts()
    counts = loadgen.stats()
    for kind in ("updates", "deletes"):
        assert counts[kind]["due"] == counts[kind]["done"] > 0
    rows = loadgen.sql("SELECT id, status, purchase_price FROM purchases")
    assert len(rows) == len(paid) - counts["deletes"]["done"]
    assert {2, 1} <= {status for _, status, _ in rows}
    # A purchase keeps its price when the item's price changes.
    assert all(price == paid[row] for row, _, price in rows)
    assert dict(loadgen.sql("SELECT id, is_vip FROM users")) != vips
    assert dict(loadgen.sql("SELECT id, price FROM items")) != prices
