"""Debezium's messages are encoded and decoded, with a fake registry."""

import json
import struct
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from racetrack.engines.pg.feed import sink as feed_sink
from racetrack.stack.avro import Avro
from tests.fake_server import serve_in_background


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


def test_a_registry_that_refuses_is_reported(avro: Avro) -> None:
    with pytest.raises(RuntimeError, match="HTTP 409"):
        avro.register("other-value", feed_sink.VALUE)
