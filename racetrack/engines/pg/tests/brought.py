"""Fake messages from Kafka for the baseline, and the content of its views."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import psycopg

from racetrack.config import Settings
from racetrack.engines.pg import engine as pg
from racetrack.engines.pg.feed import consumer as feed
from racetrack.engines.pg.feed import plan
from racetrack.stack.contract import Endpoints, ServiceClock, Stack

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
    endpoints: Endpoints | None = None
    clocks: Mapping[str, ServiceClock] = field(default_factory=dict)

    def log_of(self, service: str) -> Path:
        raise AssertionError(service)  # nothing reads PostgreSQL's log


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
    of = plan.read(connection)
    return feed.bring(connection, cast(Any, messages), cast(Any, PlainAvro()), of)


def rows(stack: Stack, view: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pg.ENGINE.read_view(stack, view).to_pylist()
    return found
