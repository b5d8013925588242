"""Names of columns in tables of Deephaven. It refuses keywords of Java, to which scripts append
`_`."""

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow


def with_names(table: "pyarrow.Table") -> "pyarrow.Table":
    """Return a table of Deephaven with the names of the view's columns."""
    return table.rename_columns([name.removesuffix("_") for name in table.column_names])


def name_there(column: str, names: Collection[str]) -> str:
    """Return the name of a view's column in Deephaven, given the names of the table's columns."""
    return column if column in names else f"{column}_"
