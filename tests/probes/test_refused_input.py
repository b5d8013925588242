"""Tests of finding the message at which an engine failed: in its log, or in its input."""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

import pytest

from racetrack.probes import refused_input
from racetrack.probes.refused_input import Message
from racetrack.stack.avro import Avro
from racetrack.workloads.contract import find_workload

SHOP = find_workload("shop")
GOOD = {"user_id": 1, "url": "/products/7", "channel": "email", "received_at": 1_795_000_000_000}
BAD = {
    "not JSON: 'hello'": b"hello",
    "no value (a tombstone)": None,
    "field url: missing": json.dumps({k: v for k, v in GOOD.items() if k != "url"}).encode(),
    "field user_id: not an integer: '1'": json.dumps({**GOOD, "user_id": "1"}).encode(),
}


class Topics:
    """Topics with the given messages."""

    def __init__(self, *messages: Message) -> None:
        self._messages = messages

    def at(self, topic: str, partition: int, offset: int) -> Message | None:
        place = topic, partition, offset
        return next((m for m in self._messages if (m.topic, m.partition, m.offset) == place), None)

    def since(self, topic: str, counted: Mapping[int, int]) -> Iterator[Message]:
        for each in self._messages:
            if each.topic == topic and each.offset >= counted.get(each.partition, 0) - 5:
                yield each


class PlainAvro:
    """A stand-in for the Avro decoder that uses JSON."""

    def decode(self, message: bytes) -> Any:
        return json.loads(message, parse_float=Decimal)


def pageview(partition: int, offset: int, body: object = None, at_ms: int = 0) -> Message:
    value = body if isinstance(body, bytes) else json.dumps(body or GOOD).encode()
    return Message("pageviews", partition, offset, value, at_ms)


def change(table: str, offset: int, **row: object) -> Message:
    value = json.dumps({"before": None, "after": row}, default=str).encode()
    return Message(f"mysql.shop.{table}", 0, offset, value)


def line(
    texts: Sequence[str], *messages: Message, counted: Mapping[int, int] | None = None
) -> str | None:
    avro = cast(Avro, PlainAvro())
    found = refused_input.find(texts, SHOP, Topics(*messages), avro, counted or {})
    return found.line("An Engine") if found else None


@pytest.mark.parametrize("reason", BAD)
def test_what_is_no_message_of_the_topic_is_found_behind_what_was_counted(reason: str) -> None:
    early, bad = pageview(3, 1, b"counted"), Message("pageviews", 3, 812, BAD[reason])
    message = "Flink's job failed: JsonParseException: it is odd\n at [Source: REDACTED]"
    text = line([message], early, pageview(0, 900), bad, counted={0: 900, 3: 810})
    where = "," if reason.startswith("field") else ":"
    assert text == (
        f"An Engine can't take pageviews/3 at offset 812{where} {reason}"
        " (JsonParseException: it is odd)"
    )


def test_a_bad_message_that_the_engine_has_counted_is_not_blamed_for_its_failure() -> None:
    counted = pageview(0, 9, b"counted", at_ms=1)
    failed = pageview(0, 11, b"failed\n" + 500 * b"c", at_ms=3)
    text = str(line([""], counted, failed, counted={0: 10}))
    assert "offset 11: not JSON: 'failed" in text and "\n" not in text and len(text) < 320
    assert "offset 9: not JSON: 'counted'" in str(line([""], counted, counted={0: 10}))


@pytest.mark.parametrize(
    "said",
    [
        "Exception caught in process. taskId=0_3, topic=pageviews, partition=3, offset=812, x",
        "Error deserializing VALUE for partition pageviews-3 at offset 812. If needed, seek",
        "RACETRACK refused topic=pageviews, partition=3, offset=812, field=, reason=odd",
    ],
)
def test_a_place_that_the_engine_names_is_taken(said: str) -> None:
    other, bad = pageview(0, 1, b"another"), pageview(3, 812, b"hello")
    log = f"INFO topic=internal, partition=9, offset=9\n{said}\nCaused by: a.b.Odd: odd\n"
    text = str(line(["it ended", log], other, bad))
    assert text.startswith("An Engine can't take pageviews/3 at offset 812: not JSON: 'hello' (")
    assert text.endswith("odd)")


def test_an_engine_that_failed_for_another_reason_is_not_explained() -> None:
    texts = ["it ended: exit code 3", "java.lang.OutOfMemoryError: Java heap space"]
    assert line(texts, pageview(0, 0), change("users", 0, email=None)) is None
