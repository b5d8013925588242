"""What Materialize's own statements come to in PostgreSQL, or why they are refused.

Whatever they make is a table or a view, so that PostgreSQL knows which names are taken, which
columns there are, and what goes with a schema that is dropped. A source is a table that a test may
fill. Sinks write nothing.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from confluent_kafka.admin import AdminClient

ANSWER_WITHIN_S = 10.0
INCLUDED = r"(?:PARTITION|OFFSET|KEY) AS \w+"
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
# Views are computed when they are read, so none needs to be kept up to date.
OTHER_FORMS = {
    r"CREATE CONNECTION (\w+) TO .*": r"CREATE TABLE \1 ()",
    r"CREATE MATERIALIZED VIEW (.*)": r"CREATE VIEW \1",
    r"CREATE INDEX (\w+) ON (\w+) \((\w+)\)": r"CREATE VIEW \1 AS SELECT \3 FROM \2",
    r"SET search_path = (\w+)": r"SET search_path = \1, mz_catalog",
    (
        r"CREATE SINK (\w+) FROM (\w+) INTO KAFKA CONNECTION (\w+) \(TOPIC '[^']*'\) KEY \(\w+\)"
        r" NOT ENFORCED FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION (\w+)"
        r" ENVELOPE UPSERT"
    ): r"CREATE TABLE \1 (LIKE \3, LIKE \4); CREATE VIEW \1_reads AS SELECT FROM \2",
}
# What Materialize has from the beginning. Its clock can be compared with times, and as text it is
# a number.
CATALOGUE = """
DROP SCHEMA IF EXISTS mz_catalog CASCADE;
CREATE SCHEMA mz_catalog;
ALTER DATABASE materialize SET search_path = public, mz_catalog;
SET search_path = mz_catalog;
CREATE FUNCTION mz_now() RETURNS bigint LANGUAGE sql AS
    $$ SELECT (1000 * extract(epoch FROM clock_timestamp()))::bigint $$;
CREATE FUNCTION is_before(bigint, timestamptz) RETURNS boolean LANGUAGE sql AS
    $$ SELECT $1 < 1000 * extract(epoch FROM $2) $$;
CREATE OPERATOR < (LEFTARG = bigint, RIGHTARG = timestamptz, FUNCTION = is_before);
CREATE FUNCTION mz_version() RETURNS text LANGUAGE sql AS $$ SELECT 'v0 (of the tests)' $$;
"""
# The shop's tables, as far as the demo reads them: column → its type in Avro.
SHOP: dict[str, dict[str, Any]] = {
    "users": {"id": "long", "email": "string"},
    "items": {"id": "long", "name": "string", "category": "string"},
    "purchases": {
        "id": "long",
        "user_id": "long",
        "item_id": "long",
        "quantity": "long",
        "purchase_price": {"type": "bytes", "logicalType": "decimal"},
    },
}


class Refused(Exception):
    """Materialize would refuse the statement; the text is its error message."""


@dataclass(frozen=True)
class Outside:
    """The broker and the registry, which Materialize asks when it makes a source."""

    has_topic: Callable[[str], bool]
    schema: Callable[[str], Any]  # the newest of a subject, None if there is none


def made_up(*more: str) -> Outside:
    """Those that have what the load generator and Debezium make, and the topics `more`."""
    rows = {f"mysql.shop.{table}": columns for table, columns in SHOP.items()}
    topics = {"pageviews", "dd_flagged_profiles", *rows, *more}
    schemas = {f"{topic}-value": _envelope(columns) for topic, columns in rows.items()}
    schemas |= {f"{topic}-key": {} for topic in rows}  # nothing looks into them
    return Outside(topics.__contains__, schemas.get)


def running(kafka: str, registry: str) -> Outside:
    """Those of a stack that runs."""

    def has_topic(topic: str) -> bool:
        admin = AdminClient({"bootstrap.servers": kafka})
        return topic in admin.list_topics(timeout=ANSWER_WITHIN_S).topics

    def schema(subject: str) -> Any:
        url = f"{registry}/subjects/{subject}/versions/latest"
        answer = httpx.get(url, timeout=ANSWER_WITHIN_S)
        return None if answer.status_code == 404 else json.loads(answer.json()["schema"])

    return Outside(has_topic, schema)


class Statements:
    """Translates statements; remembers the schemas that a source was given in its statement."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self.seeds: dict[str, tuple[Any, Any]] = {}  # source → of key and value

    def translated(self, statement: str) -> str:
        """What PostgreSQL is to do in its place."""
        plain = " ".join(re.sub(r"--.*", "", statement).rstrip("; \n").split())
        if found := re.fullmatch(SOURCE, plain):
            return self._source(found)
        for form, other in OTHER_FORMS.items():
            if found := re.fullmatch(form, plain):
                return found.expand(other)
        if re.match(r"CREATE (SOURCE|SINK)\b", plain):
            raise Refused(f"the tests know no such form: {plain}")
        return statement

    def _source(self, found: re.Match[str]) -> str:
        name, topic = found["name"], found["topic"]
        # It asks the broker at once; nothing makes up for a topic that comes later.
        if not self._outside.has_topic(topic):
            raise Refused("Topic does not exist")
        included = dict(re.findall(r"([A-Z]+) AS (\w+)", found["include"] or ""))
        columns = [f"LIKE {found['kafka']}"]  # of no columns, but it must be there
        if found["registry"]:
            columns.append(f"LIKE {found['registry']}")
            key, value = self._schemas(found, topic)
            row = _row(value) if found["envelope"] == "DEBEZIUM" else value
            columns += [f'"{each["name"]}" {_type(each["type"])}' for each in row["fields"]]
            if "KEY" in included:
                columns.append(f"{included['KEY']} {_type(key['fields'][0]['type'])}")
        else:
            columns.append({"JSON": "data jsonb", "BYTES": "data bytea"}[found["format"]])
        for word, kind in (("PARTITION", "integer"), ("OFFSET", "numeric")):
            if word in included:
                columns.append(f"{included[word]} {kind}")
        return f"CREATE TABLE {name}_progress (); CREATE TABLE {name} ({', '.join(columns)})"

    def _schemas(self, found: re.Match[str], topic: str) -> tuple[Any, Any]:
        """Return the schemas in the statement, or the registry's, which must have them by now."""
        if found["value"]:
            seeds = json.loads(found["key"]), json.loads(found["value"])
            self.seeds[found["name"]] = seeds
            return seeds
        key, value = (self._outside.schema(f"{topic}-{part}") for part in ("key", "value"))
        if key is None or value is None:
            raise Refused(f"the schema registry has no schema of the topic {topic}")
        return key, value


def _envelope(columns: dict[str, Any]) -> dict[str, Any]:
    """As Debezium has it."""
    row = {"fields": [{"name": name, "type": kind} for name, kind in columns.items()]}
    return {"fields": [{"name": "before", "type": ["null", row]}]}


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
