"""Plan of the feeder: which topics are copied into which tables. It is read from the table
`feed_topics`, which the demo's script creates, and from the definitions of the tables that it
names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import psycopg
import pyarrow as pa

# Kinds of topics (the column `how`); `feed_topics` in scripts/demo.pg.sql describes them.
EVENTS, ROWS, IDS, SINK = "events", "rows", "ids", "sink"
# The feeder creates topics of these kinds if they are missing.
OWN = (IDS, SINK)

TOPICS = "SELECT topic, how, into_table, due FROM feed_topics ORDER BY topic"
COLUMNS = """
SELECT attname, format_type(atttypid, NULL)
FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
ORDER BY attnum"""
KEY = """
SELECT attname
FROM pg_index
JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
WHERE indrelid = %s::regclass AND indisprimary"""

TIME = "timestamp with time zone"  # columns of this type are epoch milliseconds in messages
_IN_ARROW = {
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "text": pa.string(),
    TIME: pa.int64(),
}
# Columns whose values come from the message's position, not from its JSON.
_OF_THE_MESSAGE = ("partition", "offset")


@dataclass(frozen=True)
class Target:
    """A topic of the cluster, and the table into which its messages are copied."""

    topic: str
    how: str
    table: str
    due: str  # for events: the column with the due time
    columns: Mapping[str, str]  # columns that can be written → PostgreSQL's type
    key: str  # first column of the table's primary key; empty without one

    @property
    def progress(self) -> str:
        """Name of the table that counts the events of each partition."""
        return f"{self.table}_progress"

    @property
    def summary(self) -> str:
        """Name of the view that sums up these counts."""
        return f"{self.table}_summary"

    @cached_property
    def fields(self) -> pa.Schema:
        """Fields that are read from an event's JSON, with their Arrow types."""
        taken = {name: t for name, t in self.columns.items() if name not in _OF_THE_MESSAGE}
        return pa.schema([(name, _IN_ARROW[type_]) for name, type_ in taken.items()])


Plan = Mapping[str, Target]  # topic → its target


def read(connection: "psycopg.Connection[Any]", topic_of: Callable[[str], str] = str) -> Plan:
    """Read the plan from the database. `topic_of` returns the name of a topic in the cluster.

    Raises:
        psycopg.errors.UndefinedTable: the tables do not exist.
    """
    return {
        topic: Target(topic, how, table, due or "", _columns(connection, table), key)
        for name, how, table, due in connection.execute(TOPICS).fetchall()
        for topic, key in [(topic_of(name), _key(connection, table))]
    }


def _columns(connection: "psycopg.Connection[Any]", table: str) -> Mapping[str, str]:
    return dict(connection.execute(COLUMNS, [table]).fetchall())


def _key(connection: "psycopg.Connection[Any]", table: str) -> str:
    row = connection.execute(KEY, [table]).fetchone()
    return str(row[0]) if row else ""
