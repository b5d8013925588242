"""What Materialize's own statements come to in PostgreSQL, or why they are refused.

Whatever they make is a table or a view, so that PostgreSQL knows which names are taken, which
columns there are, and what goes with a schema that is dropped. Whoever reads a source reads a table
that a test may fill.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from racetrack.engines.mz.tests.materialize.outside import Outside

NAME = r'(?:\w+|"\w+")'
INCLUDED = rf"(?:PARTITION|OFFSET|KEY) AS {NAME}"
# Words that Materialize's parser keeps for itself. A name that is one of them is written in quotes.
RESERVED = {"offset"}
TYPES = {"long": "bigint", "int": "integer", "string": "text", "double": "double precision"}
AVRO = (
    r"AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION (?P<registry>\w+)"
    r"(?: SEED KEY SCHEMA '(?P<key>[^']*)' VALUE SCHEMA '(?P<value>[^']*)')?"
)

SOURCE = (
    r"CREATE SOURCE (?P<name>\w+) FROM KAFKA CONNECTION (?P<kafka>\w+) \(TOPIC '(?P<topic>[^']*)'\)"
    rf" FORMAT (?P<format>JSON|BYTES|{AVRO})(?: INCLUDE (?P<include>{INCLUDED}(?:, {INCLUDED})*))?"
    r"(?: ENVELOPE (?P<envelope>DEBEZIUM|UPSERT))?"
)
SINK = (
    r"CREATE SINK (?P<name>\w+) FROM (?P<view>\w+)"
    r" INTO KAFKA CONNECTION (?P<kafka>\w+) \(TOPIC '(?P<topic>[^']*)'\)"
    rf" KEY \(\w+\) NOT ENFORCED FORMAT {AVRO} ENVELOPE UPSERT"
)
# Statements that PostgreSQL has in another form. Its views are computed when they are read, so none
# needs to be kept up to date; and a SUBSCRIBE gives only what is there at once, so whoever waits
# for what comes later gets nothing.
OTHER_FORMS = {
    r"CREATE CONNECTION (\w+) TO .*": r"CREATE TABLE \1 ()",
    r"CREATE MATERIALIZED VIEW (.*)": r"CREATE VIEW \1",
    r"CREATE INDEX (\w+) ON (\w+) \((\w+)\)": r"CREATE VIEW \1 AS SELECT \3 FROM \2",
    r"DECLARE (\w+) CURSOR FOR SUBSCRIBE \((.*)\)": r"DECLARE \1 CURSOR FOR \2",
    r"FETCH (\d+) (\w+) WITH \(timeout = '[^']*'\)": r"FETCH \1 \2",
    r"SET search_path = (\w+)": r"SET search_path = \1, mz_catalog",
}

# What Materialize has from the beginning. Its clock can be compared with times, and as text it is
# a number.
CATALOGUE = """
DROP SCHEMA IF EXISTS mz_catalog, mz_internal CASCADE;
CREATE SCHEMA mz_catalog;
CREATE SCHEMA mz_internal;
ALTER DATABASE materialize SET search_path = public, mz_catalog;
SET search_path = mz_catalog;
CREATE FUNCTION mz_now() RETURNS bigint LANGUAGE sql AS
    $$ SELECT (1000 * extract(epoch FROM clock_timestamp()))::bigint $$;
CREATE FUNCTION is_before(bigint, timestamptz) RETURNS boolean LANGUAGE sql AS
    $$ SELECT $1 < 1000 * extract(epoch FROM $2) $$;
CREATE OPERATOR < (LEFTARG = bigint, RIGHTARG = timestamptz, FUNCTION = is_before);
CREATE FUNCTION mz_version() RETURNS text LANGUAGE sql AS $$ SELECT 'v0 (of the tests)' $$;
CREATE VIEW mz_databases AS SELECT 1 AS id, current_database() AS name;
CREATE VIEW mz_schemas AS SELECT oid AS id, nspname AS name, 1 AS database_id FROM pg_namespace;
CREATE VIEW mz_sinks AS
    SELECT 'u' || oid AS id, relname AS name, relnamespace AS schema_id
    FROM pg_class WHERE obj_description(oid, 'pg_class') = 'sink';
CREATE TABLE mz_internal.mz_sink_statuses (id text, name text, status text, error text);
CREATE TABLE mz_internal.mz_sink_statistics (id text, messages_committed bigint);
"""


class Refused(Exception):
    """Materialize would not do it; the message is what it would say."""


@dataclass(frozen=True)
class Source:
    """A source that decodes Avro: how, as it was decided when it was made."""

    table: str
    topic: str
    key_column: str | None
    key: Any
    value: Any


@dataclass(frozen=True)
class Sink:
    """A sink, and what it is to write where."""

    name: str
    view: str
    topic: str


class Statements:
    """Remembers the sources and sinks that it made, by name."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self.sources: dict[str, Source] = {}
        self.sinks: dict[str, Sink] = {}

    def translated(self, statement: str) -> str:
        """What PostgreSQL is to do in its place."""
        plain = " ".join(re.sub(r"--.*", "", statement).rstrip("; \n").split())
        if found := re.fullmatch(SOURCE, plain):
            return self._source(found)
        if found := re.fullmatch(SINK, plain):
            return self._sink(found)
        if re.match(r"CREATE (SOURCE|SINK)\b", plain):
            raise Refused(f"the tests know no such form: {plain}")
        for form, other in OTHER_FORMS.items():
            if found := re.fullmatch(form, plain):
                return found.expand(other)
        return statement

    def _source(self, found: re.Match[str]) -> str:
        name, topic = found["name"], found["topic"]
        # It asks the broker at once; nothing makes up for a topic that comes later.
        if not self._outside.has_topic(topic):
            raise Refused("Topic does not exist")
        included = dict(re.findall(rf"([A-Z]+) AS ({NAME})", found["include"] or ""))
        key_column = included.get("KEY")
        columns = [f"LIKE {found['kafka']}"]  # of no columns, but it must be there
        if found["registry"]:
            columns.append(f"LIKE {found['registry']}")
            key, value = self._schemas(found, topic)
            self.sources[name] = Source(name, topic, key_column, key, value)
            row = _row(value) if found["envelope"] == "DEBEZIUM" else value
            columns += [f'"{each["name"]}" {_type(each["type"])}' for each in row["fields"]]
            if key_column:
                columns.append(f"{_column(key_column)} {_type(key['fields'][0]['type'])}")
        else:
            columns.append({"JSON": "data jsonb", "BYTES": "data bytea"}[found["format"]])
        for word, kind in (("PARTITION", "integer"), ("OFFSET", "numeric")):
            if word in included:
                columns.append(f"{_column(included[word])} {kind}")
        return f"CREATE TABLE {name}_progress (); CREATE TABLE {name} ({', '.join(columns)})"

    def _schemas(self, found: re.Match[str], topic: str) -> tuple[Any, Any]:
        """Those that the statement says, or the registry's, which must have them by now."""
        if found["value"]:
            return json.loads(found["key"]), json.loads(found["value"])
        key, value = (self._outside.schema(f"{topic}-{part}") for part in ("key", "value"))
        if key is None or value is None:
            raise Refused(f"the schema registry has no schema of the topic {topic}")
        return key, value

    def _sink(self, found: re.Match[str]) -> str:
        name, view = found["name"], found["view"]
        self.sinks[name] = Sink(name, view, found["topic"])
        # It says that it runs before it has done anything.
        return f"""
CREATE TABLE {name} (LIKE {found["kafka"]}, LIKE {found["registry"]});
COMMENT ON TABLE {name} IS 'sink';
CREATE VIEW {name}_reads AS SELECT FROM {view};
INSERT INTO mz_internal.mz_sink_statuses
    SELECT id, name, 'running' FROM mz_sinks WHERE id = 'u' || '{name}'::regclass::oid;
INSERT INTO mz_internal.mz_sink_statistics
    SELECT id, 0 FROM mz_sinks WHERE id = 'u' || '{name}'::regclass::oid"""  # noqa: S608


def _column(alias: str) -> str:
    """The column of `INCLUDE … AS alias`, in PostgreSQL's words. Materialize takes the alias as it
    would print it, and so quotes become part of the name."""
    name = f'"{alias}"' if alias in RESERVED else alias
    return '"' + name.replace('"', '""') + '"'


def _row(envelope: Any) -> Any:
    """The row in Debezium's envelope, which is spelled out where it comes first."""
    (before,) = (each for each in envelope["fields"] if each["name"] == "before")
    return next(kind for kind in before["type"] if kind != "null")


def _type(kind: Any) -> str:
    if isinstance(kind, list):
        (kind,) = (each for each in kind if each != "null")
    if isinstance(kind, str):
        return TYPES[kind]
    return "numeric" if kind.get("logicalType") == "decimal" else _type(kind["type"])
