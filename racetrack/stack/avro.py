"""Avro messages in Confluent's framing: a zero byte, the schema id (four bytes), the record."""

import io
import json
import struct
from typing import Any

import fastavro
from fastavro.types import Schema

from racetrack.stack import net

_HEAD = struct.Struct(">bI")


def id_of(message: bytes | None) -> int:
    """Return the schema id of a message.

    Raises:
        ValueError: the message is not framed.
    """
    message = message or b""
    magic, schema = _HEAD.unpack_from(message) if len(message) >= _HEAD.size else (-1, 0)
    if magic:
        raise ValueError(f"a message that begins with {message[:5]!r} is not framed Avro")
    return int(schema)


class Avro:
    """Encoder and decoder that fetches each schema from a registry only once."""

    def __init__(self, registry: str) -> None:
        """Use the registry whose Confluent API is at the URL `registry`."""
        self._registry = registry
        self._schemas: dict[int, Schema] = {}

    def decode(self, message: bytes) -> Any:
        """Return the record in a message. Decimals are exact; null becomes None.

        Raises:
            ValueError: the message is not framed.
            NotReady: the registry does not answer or lacks the schema.
        """
        schema = self._schema(id_of(message))
        return fastavro.schemaless_reader(
            io.BytesIO(memoryview(message)[_HEAD.size :]), schema, None
        )

    def encode(self, schema: int, record: object) -> bytes:
        """Return a message that contains the record, encoded with the schema of this id."""
        message = io.BytesIO()
        message.write(_HEAD.pack(0, schema))
        fastavro.schemaless_writer(message, self._schema(schema), record)
        return message.getvalue()

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject, unless it is registered already; return its id.

        Raises:
            RuntimeError: the registry rejects the schema.
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
