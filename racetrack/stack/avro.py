"""Avro as Confluent frames it: a zero, the four bytes of a schema's id, the record."""

import io
import json
import struct
from typing import Any

import fastavro
from fastavro.types import Schema

from racetrack.stack import net

_HEAD = struct.Struct(">bI")


def id_of(message: bytes | None) -> int:
    """The id of a message's schema.

    Raises:
        ValueError: it has no such frame.
    """
    message = message or b""
    magic, schema = _HEAD.unpack_from(message) if len(message) >= _HEAD.size else (-1, 0)
    if magic:
        raise ValueError(f"a message that begins with {message[:5]!r} is not framed Avro")
    return int(schema)


class Avro:
    """Decodes and encodes messages with the schemas of a registry, each asked for once."""

    def __init__(self, registry: str) -> None:
        """`registry` is the URL of Confluent's API."""
        self._registry = registry
        self._schemas: dict[int, Schema] = {}

    def decode(self, message: bytes) -> Any:
        """The record in a message: decimals exact, a null as None.

        Raises:
            ValueError: it has no such frame.
            NotReady: the registry does not answer, or does not know its schema.
        """
        schema = self._schema(id_of(message))
        return fastavro.schemaless_reader(
            io.BytesIO(memoryview(message)[_HEAD.size :]), schema, None
        )

    def encode(self, schema: int, record: object) -> bytes:
        """A record as a message, with the schema of that id."""
        message = io.BytesIO()
        message.write(_HEAD.pack(0, schema))
        fastavro.schemaless_writer(message, self._schema(schema), record)
        return message.getvalue()

    def register(self, subject: str, schema: Schema) -> int:
        """The id of a schema under a subject, which gets it if it does not have it.

        Raises:
            RuntimeError: the registry refuses.
        """
        url = f"{self._registry}/subjects/{subject}/versions"
        status, answer = net.request(url, "POST", {"schema": json.dumps(schema)})
        if status != 200:
            raise RuntimeError(f"POST {url}: HTTP {status}: {answer.decode(errors='replace')}")
        return int(json.loads(answer)["id"])

    def _schema(self, number: int) -> Schema:
        if number not in self._schemas:
            found = net.get_json(f"{self._registry}/schemas/ids/{number}")
            text = found["schema"] if isinstance(found, dict) else None
            self._schemas[number] = fastavro.parse_schema(json.loads(str(text)))
        return self._schemas[number]
