"""What Deephaven sends as bytes is a decimal, to the last digit."""

from decimal import Decimal

import pyarrow as pa
import pytest

from racetrack.engines.dh.engine import with_decimals

BIG_DECIMAL = {b"deephaven:type": b"java.math.BigDecimal"}


def sent(unscaled: int, scale: int) -> bytes:
    """A BigDecimal as Deephaven writes it."""
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
