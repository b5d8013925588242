"""Columns of BigDecimal in tables of Deephaven, for which Arrow has no type of its own."""

from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow


def is_decimal(field: "pyarrow.Field") -> bool:
    """Return whether a column of Deephaven, received as this field, contains BigDecimal."""
    return (field.metadata or {}).get(b"deephaven:type") == b"java.math.BigDecimal"


def with_decimals(table: "pyarrow.Table") -> "pyarrow.Table":
    """Convert a table's BigDecimal columns to Arrow decimals. Deephaven sends a BigDecimal as
    bytes: four bytes with the scale (little-endian), then the unscaled value (big-endian)."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if is_decimal(field):
            values = pa.array(
                [None if raw is None else _decimal(raw) for raw in table.column(number).to_pylist()]
            )
            table = table.set_column(number, field.name, values)
    return table


def _decimal(raw: bytes) -> Decimal:
    scale = int.from_bytes(raw[:4], "little", signed=True)
    unscaled = int.from_bytes(raw[4:], "big", signed=True)
    return Decimal(f"{unscaled}E{-scale}")  # parsing a text is exact, whatever the number of digits
