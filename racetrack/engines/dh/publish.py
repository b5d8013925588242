"""Code that runs inside a Deephaven server after a workload's script; `published.py` sends it there
as text. It publishes the script's views to Kafka.

A changed row of a view becomes a message in the topic `dh.<view>`, whose key contains the row's key
columns and whose value contains all columns, both as JSON. A removed row becomes a message without
a value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from deephaven import dtypes as dht  # type: ignore[import-not-found]
from deephaven.stream.kafka import producer as kp  # type: ignore[import-not-found]
from deephaven.table import Table  # type: ignore[import-not-found]

# Constant column that is the key of a view with one row. It is also added to views that have only
# key columns: Deephaven finds the last row of a key by its other columns.
ONE_ROW = "summary_of"


def publish(script: dict[str, Any], keys: Mapping[str, Sequence[str]]) -> None:
    """Publish views, given with their key columns, that a script has created. `script` contains the
    script's global variables. Publishing ends if the variable `stop_publishing_<view>` is deleted.
    """
    for view, key in keys.items():
        # Each update cycle waits until the broker has its messages.
        script[f"stop_publishing_{view}"] = kp.produce(
            rows_of(script[view], key),
            script["kafka_properties"],
            f"{script['PREFIX']}dh.{view}",
            key_spec=kp.json_spec(include_columns=list(key) or [ONE_ROW]),
            value_spec=kp.json_spec(output_nulls=True),
            # Sorted and joined tables do not remove and add rows by their keys.
            last_by_key_columns=True,
        )


def rows_of(table: Table, key: Sequence[str]) -> Table:
    """Return a table with times as epoch milliseconds, and with the column ONE_ROW if it has no
    key or no other columns."""
    columns = [
        f"{column.name} = epochMillis({column.name})"
        if column.data_type == dht.Instant
        else column.name
        for column in table.columns
    ]
    is_enough = key and len(key) < len(columns)
    return table.view(columns if is_enough else [*columns, f"{ONE_ROW} = `all`"])
