"""Tests that Debezium's messages are encoded and decoded, with a fake registry."""

import struct
from collections.abc import Iterator
from decimal import Decimal

import pytest

from racetrack.engines.pg.feed import sink as feed_sink
from racetrack.stack.avro import Avro
from tests.fake_server import JsonHandler, serving


class FakeRegistry(JsonHandler):
    """A fake registry: the part of Confluent's API that we use."""

    schemas: list[str]

    def post(self) -> None:
        schema = self.received()["schema"]
        if self.path != "/subjects/s-value/versions":
            self.answer({"message": "no such"}, 409)
            return
        if schema not in self.schemas:
            self.schemas.append(schema)
        self.answer({"id": self.schemas.index(schema)})

    def get(self) -> None:
        self.answer({"schema": self.schemas[int(self.path.rpartition("/")[2])]})


@pytest.fixture
def avro() -> Iterator[Avro]:
    FakeRegistry.schemas = []
    with serving(FakeRegistry) as url:
        yield Avro(url)


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


def test_a_registry_that_refuses_is_reported(avro: Avro) -> None:
    with pytest.raises(RuntimeError, match="HTTP 409"):
        avro.register("other-value", feed_sink.VALUE)
