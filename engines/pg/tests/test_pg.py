"""The baseline on a real PostgreSQL: batches as Kafka would bring them go in, views come out."""

import json
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from engines import find_engine
from engines.contract import DemoError, NoSuchView, Progress, Summary
from engines.pg import engine as pg
from engines.pg.feed import consumer as feed
from engines.pg.feed import sink as feed_sink
from engines.pg.feed.avro import Avro
from engines.pg.services import postgres
from engines.shared.tests.postgres import PASSWORD, Postgres, running_postgres
from racetrack.errors import RacetrackError, UsageError
from racetrack.settings import Settings, load
from racetrack.stack.contract import Stack
from tests.fake_server import serve_in_background
from tests.run.made_up import MakeReady, ready, refusal_of
from workloads.shop.catalogue import VIEWS

__all__ = ["ready"]  # a fixture

NOW_MS = 1_795_000_000_000
WITHIN_S = 10.0


@dataclass(frozen=True)
class Message:
    """A Kafka message, as far as it is looked at."""

    of: str
    at: int
    body: bytes | None
    name: bytes | None = None
    where: int = 0
    problem: str | None = None

    def error(self) -> str | None:
        return self.problem

    def topic(self) -> str:
        return self.of

    def partition(self) -> int:
        return self.where

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.body


class PlainAvro:
    """JSON in Avro's place: what is between the frame and the tables."""

    def decode(self, message: bytes) -> Any:
        return json.loads(message, parse_float=Decimal)

    def encode(self, schema: int, record: object) -> bytes:
        return json.dumps(record, default=str).encode()

    def register(self, subject: str, schema: object) -> int:
        return 1


@dataclass(frozen=True)
class OnlySettings:
    """What the engine asks of a stack."""

    settings: Settings


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running_postgres() as found:
        found.rows(f"CREATE ROLE shop SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        yield found


@pytest.fixture
def stack(server: Postgres) -> Iterator[Stack]:
    server.rows("CREATE DATABASE shop OWNER shop")
    changed = {"POSTGRES_PORT": str(server.port), "POSTGRES_PASSWORD": PASSWORD}
    yield cast(Stack, OnlySettings(load(changed)))
    server.rows("DROP DATABASE shop WITH (FORCE)")


@pytest.fixture
def loaded(stack: Stack) -> Iterator["psycopg.Connection[Any]"]:
    """The demo, and the consumer's connection."""
    pg.ENGINE.load_demo(stack)
    with postgres.connect(stack.settings) as connection:
        yield connection


def pageview(at: int, url: str, user: int = 7, where: int = 0, when: int = NOW_MS) -> Message:
    body = {"user_id": user, "url": url, "channel": "social", "received_at": when + at}
    return Message("pageviews", at, json.dumps(body).encode(), where=where)


def change(table: str, at: int, before: Any, after: Any) -> Message:
    body = json.dumps({"before": before, "after": after}, default=str).encode()
    return Message(f"mysql.shop.{table}", at, body)


def user(number: int, email: str | None = "a@b") -> dict[str, Any]:
    times = {"created_at": "2026-11-21T10:00:00Z", "updated_at": NOW_MS}
    return {"id": number, "email": email, "is_vip": 0, **times}


def purchase(number: int, price: str, buyer: int = 7) -> dict[str, Any]:
    times = {"created_at": "2026-11-21T10:00:00Z", "updated_at": NOW_MS}
    what = {"id": number, "user_id": buyer, "item_id": 3, "status": 1, "quantity": 2, "deleted": 0}
    return {**what, "purchase_price": price, **times}


def bring(connection: "psycopg.Connection[Any]", *messages: Message) -> set[str]:
    return feed.bring(connection, cast(Any, messages), cast(Any, PlainAvro()))


def rows(stack: Stack, view: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pg.ENGINE.read_view(stack, view).to_pylist()
    return found


def test_it_is_an_engine() -> None:
    assert find_engine("pg") is pg.ENGINE


def test_the_script_makes_every_view_with_its_columns(
    loaded: "psycopg.Connection[Any]", stack: Stack
) -> None:
    for view in VIEWS:
        table = pg.ENGINE.read_view(stack, view.name)
        assert set(view.columns) <= set(table.column_names), view.name
        assert table.num_rows == 0


def test_another_view_is_none_of_its_own(stack: Stack) -> None:
    with pytest.raises(NoSuchView, match="nowhere"):
        pg.ENGINE.read_view(stack, "nowhere")


def test_what_the_server_refuses_is_told(loaded: object, stack: Stack) -> None:
    with pytest.raises(DemoError, match='relation "pageviews" already exists'):
        pg.ENGINE.load_demo(stack)


def test_a_script_is_loaded_whole_or_not_at_all(stack: Stack, tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "demo.pg.sql"
    script.parent.mkdir()
    script.write_text(pg.SCRIPT.read_text().replace("COMMIT;", "SELECT nothing;\nCOMMIT;"))
    with pytest.raises(DemoError, match="nothing"):
        pg.PostgreSQL(script).load_demo(stack)
    with postgres.connect(stack.settings) as connection:
        assert connection.execute(feed.MADE).fetchone() == (False,)


def test_pageviews_are_counted_with_the_batch_that_brings_them(
    loaded: "psycopg.Connection[Any]", stack: Stack
) -> None:
    bring(loaded, pageview(0, "/products/3"), pageview(1, "/profiles/9", where=4))
    bring(loaded, pageview(1, "/products/3"), pageview(2, "/about"))
    assert rows(stack, "pageviews_progress") == [
        {"partition": 4, "total": 1, "max_received_at": NOW_MS + 1},
        {"partition": 0, "total": 3, "max_received_at": NOW_MS + 2},
    ]
    assert rows(stack, "pageviews_by_item") == [{"item_id": 3, "pageviews": 2}]
    with pytest.raises(ValueError, match="pageviews"):
        bring(loaded, pageview(3, "/x"), Message("pageviews", 4, b""))
    assert rows(stack, "pageviews_summary")[0]["total"] == 4
    assert feed.wait_for_tables(loaded) == {("pageviews", 0): 3, ("pageviews", 4): 2}


@pytest.mark.parametrize(
    "wrong",
    [
        b"no json",
        b'{"user_id": 1, "url": "/", "channel": "c", "received_at": "later"}',
        b'{"user_id": 1, "url": "/", "channel": "c", "received_at": 1.5}',
        b'{"user_id": 1, "url": "/", "received_at": 1}',
    ],
)
def test_what_is_no_pageview_is_loud_and_changes_nothing(
    loaded: "psycopg.Connection[Any]", stack: Stack, wrong: bytes
) -> None:
    with pytest.raises((ValueError, psycopg.Error)):
        bring(loaded, pageview(0, "/products/3"), Message("pageviews", 1, wrong))
    assert rows(stack, "pageviews") == []
    assert feed.wait_for_tables(loaded) == {}


def test_awkward_text_comes_through(loaded: "psycopg.Connection[Any]", stack: Stack) -> None:
    urls = ['/a"b,c', "/a\nb\\n", "", "/\u00e4\u20ac", "\\."]
    bring(loaded, *(pageview(at, url) for at, url in enumerate(urls)))
    assert [row["url"] for row in rows(stack, "pageviews")] == urls


def test_rows_are_changed_and_deleted_in_order(
    loaded: "psycopg.Connection[Any]", stack: Stack
) -> None:
    first, second = purchase(1, "10.50"), purchase(2, "99999.99")
    bring(loaded, change("purchases", 0, None, first), change("purchases", 1, None, second))
    assert rows(stack, "purchases_by_item")[0]["revenue"] == Decimal("100010.49")
    cheaper = purchase(2, "0.01")
    bring(
        loaded,
        change("purchases", 2, first, None),
        change("purchases", 3, second, cheaper),
        change("purchases", 4, None, purchase(3, "5")),
        change("purchases", 5, purchase(3, "5"), None),
        change("users", 0, None, user(7, None)),
    )
    assert [(row["id"], row["purchase_price"]) for row in rows(stack, "purchases")] == [
        (2, Decimal("0.01"))
    ]
    assert [(row["id"], row["email"]) for row in rows(stack, "users")] == [(7, None)]


def test_flags_are_ids_and_all_else_is_left_out(
    loaded: "psycopg.Connection[Any]", stack: Stack
) -> None:
    flags = [b"7", b'"8"', b"7", b"no id", b"\xff", b"", b"1" * 19]
    bring(loaded, *(Message("dd_flagged_profiles", at, body) for at, body in enumerate(flags)))
    bring(loaded, pageview(0, "/a", user=8), pageview(1, "/b", user=9))
    assert [row["user_id"] for row in rows(stack, "dd_flagged_profiles")] == [7, 8]
    assert [row["url"] for row in rows(stack, "dd_flagged_profile_view")] == ["/a"]


def test_an_error_of_the_broker_ends_it(loaded: "psycopg.Connection[Any]") -> None:
    with pytest.raises(RuntimeError, match="pageviews: gone"):
        bring(loaded, Message("pageviews", 0, None, problem="gone"))


def test_progress_is_told_when_it_is_committed(
    loaded: "psycopg.Connection[Any]", stack: Stack
) -> None:
    bring(loaded, pageview(0, "/a"))
    stop = threading.Event()
    told = pg.ENGINE.updates(stack, stop)
    stood = [next(told), next(told)]
    assert [(p.partition, p.total) for p in stood if isinstance(p, Progress)] == [(0, 1)]
    with loaded.transaction():
        bring(loaded, pageview(1, "/a"), pageview(2, "/b", where=1))
        threading.Timer(0.2, stop.set).start()
        assert list(told) == []  # until `stop`: nothing, for nothing is committed
    stop.clear()
    told = pg.ENGINE.updates(stack, stop)
    assert [type(next(told)) for _ in range(3)] == [Progress, Progress, Summary]
    bring(loaded, pageview(2, "/a"))
    one, both = next(told), next(told)
    stop.set()
    assert isinstance(one, Progress) and isinstance(both, Summary)
    assert (one.partition, one.total, one.max_received_at_ms) == (0, 3, NOW_MS + 2)
    assert (both.total, both.max_received_at_ms) == (4, NOW_MS + 2)
    assert both.dt_ms == both.timestamp_ms - both.max_received_at_ms


def test_a_server_that_ends_is_told(
    loaded: "psycopg.Connection[Any]", stack: Stack, server: Postgres
) -> None:
    bring(loaded, pageview(0, "/a"))
    stop = threading.Event()
    told = pg.ENGINE.updates(stack, stop)
    assert len([next(told), next(told)]) == 2
    ended = server.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = 'shop' AND query LIKE 'SELECT total, max_received_at%'"
    )
    assert ended == [(True,)]
    threading.Timer(WITHIN_S, stop.set).start()
    with pytest.raises(RacetrackError, match="PostgreSQL tells no more"):
        list(told)


@pytest.mark.parametrize("payload", ["", "1 2", "1 2 x", "1 2 3 4"])
def test_what_is_no_progress_is_refused(payload: str) -> None:
    with pytest.raises(RacetrackError, match="no progress"):
        pg.update_of("pageviews_progress", payload, NOW_MS)


# ---- The sink ------------------------------------------------------------------------------------


class FakeProducer:
    """Takes what is sent to Kafka."""

    def __init__(self, _config: object) -> None:
        self.sent: list[tuple[Any, Any]] = []

    def produce(self, topic: str, key: bytes, value: bytes | None, on_delivery: object) -> None:
        assert topic == feed_sink.TOPIC
        self.sent.append((json.loads(key)["id"], value and json.loads(value)))

    def flush(self, within_s: float) -> int:
        return 0


def test_the_sink_sends_what_has_changed_and_what_has_gone(
    loaded: "psycopg.Connection[Any]", stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_sink, "Producer", FakeProducer)
    monkeypatch.setattr(feed_sink, "SEND_EVERY_S", 0.0)
    sink = feed_sink.Sink("nowhere", cast(Any, PlainAvro()))
    producer = cast(FakeProducer, sink._producer)
    bring(loaded, change("purchases", 0, None, purchase(1, "6000.00")))
    sink.send_if_due(loaded)
    value = {"email": None, "lifetime_value": "12000.00", "purchases": 1}
    assert producer.sent == [(7, value)]
    sink.shop_has_changed()
    sink.send_if_due(loaded)
    assert len(producer.sent) == 1  # nothing is new
    bring(loaded, change("users", 0, None, user(7)))
    sink.send_if_due(loaded)
    assert len(producer.sent) == 1  # nobody said that it may be
    sink.shop_has_changed()
    sink.send_if_due(loaded)
    assert producer.sent[1:] == [(7, {**value, "email": "a@b"})]
    bring(loaded, change("purchases", 1, purchase(1, "6000.00"), purchase(1, "5000.00")))
    sink.shop_has_changed()
    sink.send_if_due(loaded)
    assert producer.sent[2:] == [(7, None)]  # exactly 10,000 is not above it


def test_the_sink_is_read_back(loaded: "psycopg.Connection[Any]", stack: Stack) -> None:
    def sent(at: int, number: int, value: object) -> Message:
        body = None if value is None else json.dumps(value).encode()
        return Message(feed_sink.TOPIC, at, body, json.dumps({"id": number}).encode())

    value = {"email": None, "lifetime_value": "12000.00", "purchases": 1}
    bring(loaded, sent(0, 7, value), sent(1, 8, value))
    bring(loaded, sent(2, 7, None))
    expected = {**value, "id": 8, "lifetime_value": Decimal("12000.00")}
    assert rows(stack, "hvu_test") == [expected]


# ---- Avro ----------------------------------------------------------------------------------------


class FakeRegistry(BaseHTTPRequestHandler):
    """Confluent's API, as far as it is used."""

    schemas: list[str]
    log_message = lambda *_: None  # noqa: E731 - quiet

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/subjects/s-value/versions":
            self.answer(409, {"message": "no such"})
            return
        if body["schema"] not in self.schemas:
            self.schemas.append(body["schema"])
        self.answer(200, {"id": self.schemas.index(body["schema"])})

    def do_GET(self) -> None:
        self.answer(200, {"schema": self.schemas[int(self.path.rpartition("/")[2])]})

    def answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def avro() -> Iterator[Avro]:
    FakeRegistry.schemas = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeRegistry)
    serve_in_background(server)
    yield Avro(f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()


def test_a_record_comes_back_as_it_went_with_decimals_exact(avro: Avro) -> None:
    record = {"email": None, "lifetime_value": Decimal("123456789012345678.99"), "purchases": 3}
    number = avro.register("s-value", feed_sink.VALUE)
    assert avro.register("s-value", feed_sink.VALUE) == number
    message = avro.encode(number, record)
    assert message[:5] == struct.pack(">bI", 0, number)
    assert avro.decode(message) == record


def test_what_is_not_framed_is_refused(avro: Avro) -> None:
    with pytest.raises(ValueError, match="not framed"):
        avro.decode(b'{"id": 1}')


def test_a_registry_that_refuses_is_told(avro: Avro) -> None:
    with pytest.raises(RuntimeError, match="HTTP 409"):
        avro.register("other-value", feed_sink.VALUE)


def test_a_setting_of_containers_is_refused_natively(ready: MakeReady) -> None:
    with pytest.raises(UsageError, match=refusal_of("POSTGRES_TMPFS", "native")):
        ready("pg", "native", POSTGRES_TMPFS="1g")
