"""What a sink does after its statement has returned, when a test lets it."""

import io
from collections.abc import Iterable
from typing import Any

import fastavro
import psycopg

from racetrack.engines.mz.tests.materialize.outside import FakeOutside
from racetrack.engines.mz.tests.materialize.statements import Sink, Source

# As a real one was seen to register them for the demo's high_value_users.
KEY = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "id", "type": ["null", "long"]}],
}
VALUE = {
    "type": "record",
    "name": "envelope",
    "fields": [
        {"name": "id", "type": ["null", "long"]},
        {"name": "email", "type": ["null", "string"]},
        {
            "name": "lifetime_value",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2},
        },
        {"name": "purchases", "type": "long"},
    ],
}
STALLED = "schema being registered is incompatible with an earlier schema"


def stall(connection: "psycopg.Connection[Any]", sink: Sink) -> None:
    """As with Apicurio now and then. It comes back by itself: see `write`."""
    _say(connection, sink, "stalled", STALLED)


def write(
    connection: "psycopg.Connection[Any]",
    sink: Sink,
    outside: FakeOutside,
    sources: Iterable[Source],
) -> None:
    """Make the topic if it is missing, register the schemas, write the view as it is now, and let
    the sources that read the topic have it. Nothing is counted: messages_committed stays 0."""
    outside.topics.add(sink.topic)
    outside.schemas |= {f"{sink.topic}-key": KEY, f"{sink.topic}-value": VALUE}
    _say(connection, sink, "running", None)
    names = [str(each["name"]) for each in VALUE["fields"]]  # type: ignore[index]
    found = connection.execute(f"SELECT {', '.join(names)} FROM {sink.view}".encode())  # noqa: S608
    rows = [dict(zip(names, row, strict=True)) for row in found]
    messages = [(_encoded({"id": row["id"]}, KEY), _encoded(row, VALUE)) for row in rows]
    for source in sources:
        if source.topic == sink.topic:
            _read(connection, source, messages)


def _read(
    connection: "psycopg.Connection[Any]", source: Source, messages: list[tuple[bytes, bytes]]
) -> None:
    """With the schemas that were decided when the source was made."""
    connection.execute(f"TRUNCATE {source.table}".encode())
    for key, value in messages:
        row = _decoded(value, VALUE, source.value)
        if source.key_column:
            row |= {source.key_column: next(iter(_decoded(key, KEY, source.key).values()))}
        places = ", ".join(["%s"] * len(row))
        insert = f"INSERT INTO {source.table} ({', '.join(row)}) VALUES ({places})"  # noqa: S608
        connection.execute(insert.encode(), list(row.values()))


def _encoded(row: dict[str, Any], schema: Any) -> bytes:
    message = io.BytesIO()
    fastavro.schemaless_writer(message, schema, row)
    return message.getvalue()


def _decoded(message: bytes, written: Any, wanted: Any) -> dict[str, Any]:
    row = fastavro.schemaless_reader(io.BytesIO(message), written, wanted)
    assert isinstance(row, dict)
    return row


def _say(connection: "psycopg.Connection[Any]", sink: Sink, status: str, error: str | None) -> None:
    update = "UPDATE mz_internal.mz_sink_statuses SET status = %s, error = %s WHERE name = %s"
    connection.execute(update, [status, error, sink.name])
