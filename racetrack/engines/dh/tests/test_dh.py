"""Tests of decimals that Deephaven sends as bytes, and of the topic prefixes that it accepts."""

from contextlib import nullcontext
from decimal import Decimal

import pyarrow as pa
import pytest

from racetrack.config import load
from racetrack.engines.dh.decimals import with_decimals
from racetrack.engines.dh.engine import ENGINE
from racetrack.errors import UsageError
from racetrack.stack.native.stack import NativeStack

BIG_DECIMAL = {b"deephaven:type": b"java.math.BigDecimal"}


def sent(unscaled: int, scale: int) -> bytes:
    """Return a BigDecimal as Deephaven encodes it."""
    length = unscaled.bit_length() // 8 + 1
    return scale.to_bytes(4, "little", signed=True) + unscaled.to_bytes(length, "big", signed=True)


@pytest.mark.parametrize(
    ("unscaled", "scale", "value"),
    [
        (1234, 2, "12.34"),
        (-1, 2, "-0.01"),
        (0, 0, "0"),
        (5, -2, "500"),
        (10**35 + 1, 5, "1000000000000000000000000000000.00001"),
    ],
)
def test_a_big_decimal_is_read_exactly(unscaled: int, scale: int, value: str) -> None:
    column = pa.field("price", pa.binary(), metadata=BIG_DECIMAL)
    table = pa.table([pa.array([sent(unscaled, scale), None])], schema=pa.schema([column]))
    assert with_decimals(table).column("price").to_pylist() == [Decimal(value), None]


@pytest.mark.parametrize(
    ("prefix", "is_used"),
    [("racetrack-1.", False), ("1race.", False), ("race..", False), ("", True), ("a.b_2.", True)],
)
def test_a_prefix_that_names_no_avro_records_is_refused(prefix: str, is_used: bool) -> None:
    with nullcontext() if is_used else pytest.raises(UsageError, match=r"KAFKA_TOPIC_PREFIX"):
        ENGINE.check(NativeStack(load({}).model_copy(update={"kafka_topic_prefix": prefix})))


def test_views_without_keys_are_not_published() -> None:
    settings = load({"WORKLOAD": "nexmark", "DEEPHAVEN_PUBLISH": "true"})
    with pytest.raises(UsageError, match=r"DEEPHAVEN_PUBLISH.*nexmark"):
        ENGINE.check(NativeStack(settings))


def test_each_program_is_named_in_its_order() -> None:
    settings = {"WORKLOAD": "nexmark", "NEXMARK_QUERIES": "q4", "NEXMARK_WATERMARK_DELAY_MS": "9"}
    hints = "\n".join(ENGINE.usage_hints(NativeStack(load(settings))))
    delay, shared, query = ("NEXMARK_WATERMARK_DELAY_MS': '9'", "nexmark/nexmark.py", "q4.py")
    assert hints.index(delay) < hints.index(shared) < hints.index(query)
