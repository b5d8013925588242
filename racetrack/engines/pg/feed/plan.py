"""What is brought where: as the script that was run says it, in its table `feed_topics`, and as the
tables are that it names."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import psycopg
import pyarrow as pa

# What becomes of a topic's messages; see `feed_topics` in scripts/demo.pg.sql.
EVENTS, ROWS, IDS, SINK = "events", "rows", "ids", "sink"
# Their topics are made here if they are missing.
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

TIME = "timestamp with time zone"  # in messages: epoch milliseconds
_IN_ARROW = {
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "text": pa.string(),
    TIME: pa.int64(),
}
_OF_THE_MESSAGE = ("partition", "offset")  # they are not in it


@dataclass(frozen=True)
class Target:
    """A topic, and the table that its messages are brought into."""

    topic: str
    how: str
    table: str
    due: str  # of events: the column that says when one was due
    columns: Mapping[str, str]  # that can be written → PostgreSQL's type
    key: str  # the first column of the primary key, if it has one

    @property
    def progress(self) -> str:
        """The table in which events are counted."""
        return f"{self.table}_progress"

    @property
    def summary(self) -> str:
        """The view that sums these counts up."""
        return f"{self.table}_summary"

    @cached_property
    def fields(self) -> pa.Schema:
        """Fields that are read of an event's JSON."""
        taken = {name: t for name, t in self.columns.items() if name not in _OF_THE_MESSAGE}
        return pa.schema([(name, _IN_ARROW[type_]) for name, type_ in taken.items()])


Plan = Mapping[str, Target]  # by topic


def read(connection: "psycopg.Connection[Any]") -> Plan:
    """Read which topics the tables take.

    Raises:
        psycopg.errors.UndefinedTable: they are not there.
    """
    return {
        topic: Target(topic, how, table, due or "", _columns(connection, table), key)
        for topic, how, table, due in connection.execute(TOPICS).fetchall()
        for key in [_key(connection, table)]
    }


def _columns(connection: "psycopg.Connection[Any]", table: str) -> Mapping[str, str]:
    return dict(connection.execute(COLUMNS, [table]).fetchall())


def _key(connection: "psycopg.Connection[Any]", table: str) -> str:
    row = connection.execute(KEY, [table]).fetchone()
    return str(row[0]) if row else ""
