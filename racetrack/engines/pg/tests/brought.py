"""Messages as Kafka delivers them to the baseline engine (PostgreSQL), and the content of its
views."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import psycopg
from confluent_kafka import Message

from racetrack.engines.pg import engine as pg
from racetrack.engines.pg.feed import consumer as feed
from racetrack.engines.pg.feed import plan
from racetrack.engines.pg.services import postgres
from racetrack.engines.shared.tests import fakes
from racetrack.stack.contract import Stack

NOW_MS = 1_795_000_000_000
WITHIN_S = 10.0


class PlainAvro:
    """A stand-in for the Avro decoder that uses JSON, for tests of the steps after the decoding."""

    def decode(self, message: bytes) -> Any:
        return json.loads(message, parse_float=Decimal)

    def encode(self, schema: int, record: object) -> bytes:
        return json.dumps(record, default=str).encode()

    def register(self, subject: str, schema: object) -> int:
        return 1


def pageview(at: int, url: str, user: int = 7, where: int = 0, when: int = NOW_MS) -> Message:
    body = {"user_id": user, "url": url, "channel": "social", "received_at": when + at}
    return Message("pageviews", where, at, value=json.dumps(body).encode())


def change(table: str, at: int, before: Any, after: Any) -> Message:
    body = json.dumps({"before": before, "after": after}, default=str).encode()
    return Message(f"mysql.shop.{table}", 0, at, value=body)


def user(number: int, email: str | None = "a@b") -> dict[str, Any]:
    times = {"created_at": "2026-11-21T10:00:00Z", "updated_at": NOW_MS}
    return {"id": number, "email": email, "is_vip": 0, **times}


def purchase(number: int, price: str, buyer: int = 7) -> dict[str, Any]:
    times = {"created_at": "2026-11-21T10:00:00Z", "updated_at": NOW_MS}
    what = {"id": number, "user_id": buyer, "item_id": 3, "status": 1, "quantity": 2, "deleted": 0}
    return {**what, "purchase_price": price, **times}


@dataclass(frozen=True)
class Loaded:
    """A stack with a workload's tables and views, and a connection such as the feeder uses."""

    stack: Stack
    connection: "psycopg.Connection[Any]"

    def bring(self, *messages: Message) -> set[str]:
        of = plan.read(self.connection)
        return feed.bring(self.connection, messages, cast(Any, PlainAvro()), of)

    def rows(self, view: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pg.ENGINE.read_view(self.stack, view).to_pylist()
        return found


@contextmanager
def demo(stack: Stack, **changes: object) -> Iterator[Loaded]:
    """Load the demo into a stack with these settings changed."""
    changed = fakes.stack(stack.settings.model_copy(update=changes))
    pg.ENGINE.load_demo(changed)
    with postgres.connect(changed.settings) as connection:
        yield Loaded(changed, connection)
