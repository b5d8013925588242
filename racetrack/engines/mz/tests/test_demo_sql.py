"""Tests of the views in `scripts/demo.sql` and `ads.sql`, which must contain the same rows as those
of `demo.py` and `ads.py`. The view definitions run on a real PostgreSQL, with small tables in place
of the sources. Also: Materialize's clock is used as it allows."""

# ruff: noqa: S608  # queries are made of names that stand here

import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
import sqlglot
from sqlglot import TokenType, exp

from racetrack.config import REPO
from racetrack.engines.shared.tests.postgres import Postgres
from racetrack.workloads.ads.tests.test_views import ADS, CAMPAIGNS, events, views_of
from racetrack.workloads.contract import View, find_workload
from racetrack.workloads.shop.catalogue import VIEWS
from racetrack.workloads.shop.tests import shop
from racetrack.workloads.shop.tests.shop import Shop

SCRIPT = REPO / "scripts" / "demo.sql"

VARIABLES = ("kafka", "registry", "sink_topic")


def statements(script: Path = SCRIPT) -> list[str]:
    """Return the script's SQL statements as psql sends them."""
    text = re.sub(r"^\\.*$", "", script.read_text(), flags=re.MULTILINE)
    for name in VARIABLES:
        text = text.replace(f":'{name}'", f"'{name}'")
    assert not re.search(r"\\|(?<!:):['\"\w]*[a-z]\b", re.sub(r"--.*|::", "", text))
    found, start = [], 0
    for token in sqlglot.tokenize(text, read="materialize"):
        if token.token_type == TokenType.SEMICOLON:
            found.append(text[start : token.start].strip())
            start = token.end + 1
    assert not re.sub(r"--.*", "", text[start:]).strip(), "the last statement has no end"
    return [re.sub(r"(?m)^\s*--.*\n?", "", statement).strip() for statement in found]


def created(kind: str, script: Path = SCRIPT) -> dict[str, str]:
    """Return the statements that create a kind of object (a regular expression), by object name."""
    found = {}
    for statement in statements(script):
        if match := re.match(rf"CREATE (?:{kind}) (\w+)", statement):
            found[match[1]] = statement
    return found


def test_the_clock_is_only_compared_and_only_where_materialize_allows_it() -> None:
    for name, statement in created("MATERIALIZED VIEW|VIEW").items():
        tree = sqlglot.parse_one(statement, read="materialize")
        assert not re.search(r"\bnow\(|current_timestamp", statement, re.IGNORECASE), name
        for call in tree.find_all(exp.Anonymous):
            if call.name.lower() == "mz_now":
                assert isinstance(call.parent, exp.LT | exp.LTE | exp.GT | exp.GTE)
                above = call.parent.parent
                while isinstance(above, exp.And):
                    above = above.parent
                assert isinstance(above, exp.Where)


@pytest.mark.parametrize("name", ["shop", "ads"])
def test_sources_are_the_tables_and_bring_no_progress_in_the_way_of_a_view(name: str) -> None:
    workload = find_workload(name)
    script = workload.script(".sql")
    views, sources = created("MATERIALIZED VIEW|VIEW", script), created("SOURCE", script)
    assert workload.progress in views
    assert set(workload.tables) <= sources.keys()
    assert not {f"{source}_progress" for source in sources} & {*views, *sources}


# Schemas that a real Materialize registers for the sink of the view `high_value_users`.
KEY = {"type": "record", "name": "row", "fields": [{"name": "id", "type": ["null", "long"]}]}
CENTS = {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2}
VALUE = {
    "type": "record",
    "name": "envelope",
    "fields": [
        {"name": "id", "type": ["null", "long"]},
        {"name": "email", "type": ["null", "string"]},
        {"name": "lifetime_value", "type": CENTS},
        {"name": "purchases", "type": "long"},
    ],
}


def test_the_source_of_the_sink_s_topic_has_the_schemas_that_the_sink_will_register() -> None:
    """The registry has none yet when the script runs."""
    statement = created("SOURCE")["hvu_test_upserts"]
    assert [json.loads(text) for text in re.findall(r"SCHEMA '([^']*)'", statement)] == [KEY, VALUE]


SOURCES = """
CREATE TABLE pageviews_json (data jsonb, partition int, message_offset numeric);
CREATE TABLE users (id bigint, email text);
CREATE TABLE items (id bigint, name text, category text);
CREATE TABLE purchases (
    id bigint, user_id bigint, item_id bigint, quantity bigint, purchase_price numeric);
CREATE TABLE dd_flagged_profiles_bytes (data bytea);
CREATE TABLE hvu_test_upserts (
    id bigint, email text, lifetime_value numeric, purchases bigint, message_key bigint);
CREATE TABLE ad_events_json (data jsonb, partition int);
CREATE TABLE campaigns (campaign_id text);
CREATE TABLE ads (ad_id text, campaign_id text);
CREATE FUNCTION mz_now() RETURNS timestamptz STABLE LANGUAGE sql AS
    $$ SELECT to_timestamp(current_setting('test.now_ms')::double precision / 1000) $$;
"""
# Messages of the topic of flags that are not numbers: the views must leave them out.
NO_FLAGS = [b"x", b"-5", b"5\n", b"6 ", b"\xff\xfe", b"1234567890123456789", None]
FROM_TOPICS = {"users", "items", "purchases"}
ADS_VIEWS = find_workload("ads").views


@pytest.fixture(scope="module")
def truth() -> Shop:
    """Return a shop with edge cases of the views' conditions."""
    made = shop.make()
    made.users[2]["email"] = None
    made.flags += ["007", '"1', '2"']
    newest = {**made.pageviews[-1], "offset": 5_000, "url": "/profiles/2"}
    made.pageviews.append({**newest, "received_at": made.now_ms + 90_000})
    for user, quantity, price in ((801, 10_000, "1.00"), (802, 1, "10000.01")):
        purchase = {"id": user, "user_id": user, "quantity": quantity}
        made.purchases.append({**made.purchases[0], **purchase, "purchase_price": Decimal(price)})
    return made


@pytest.fixture(scope="module")
def db(postgres: Postgres, truth: Shop) -> Iterator[psycopg.Connection]:
    """Create the script's views on the tables above."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"SET test.now_ms = {truth.now_ms}".encode())
        connection.execute(SOURCES.encode())
        fill(connection, "users", truth.users, "id", "email")
        fill(connection, "items", truth.items, "id", "name", "category")
        bought = ("id", "user_id", "item_id", "quantity", "purchase_price")
        fill(connection, "purchases", truth.purchases, *bought)
        worth = shop.views(truth)["high_value_users"].to_pylist()
        fill(connection, "hvu_test_upserts", worth, "id", "email", "lifetime_value", "purchases")
        of_json = ("user_id", "url", "channel", "received_at")
        pageviews = [
            {**row, "data": json.dumps({name: row[name] for name in of_json})}
            for row in truth.pageviews
        ]
        fill(connection, "pageviews_json", pageviews, "data", "partition", "offset")
        flags = [{"data": data} for data in [*map(str.encode, truth.flags), *NO_FLAGS]]
        fill(connection, "dd_flagged_profiles_bytes", flags, "data")
        fill(connection, "campaigns", [{"id": name} for name in CAMPAIGNS], "id")
        ads = [{"id": name, "campaign": campaign} for name, campaign in ADS.items()]
        fill(connection, "ads", ads, "id", "campaign")
        ad_events = [{**event, "data": json.dumps(event)} for event in events()]
        fill(connection, "ad_events_json", ad_events, "data", "partition")
        for script in (SCRIPT, find_workload("ads").script(".sql")):
            for statement in created("MATERIALIZED VIEW|VIEW", script).values():
                connection.execute(statement.replace("CREATE MATERIALIZED", "CREATE", 1).encode())
        yield connection


def fill(db: psycopg.Connection, table: str, of: list[shop.Row], *columns: str) -> None:
    """Insert these columns of the rows into a table's first columns."""
    values = ", ".join(["%s"] * len(columns))
    db.cursor().executemany(
        f"INSERT INTO {table} VALUES ({values})".encode(),
        [[row[name] for name in columns] for row in of],
    )


def rows(db: psycopg.Connection, query: str) -> list[tuple[object, ...]]:
    return db.execute(query.encode()).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [*(view for view in VIEWS if view.name not in FROM_TOPICS), *ADS_VIEWS],
    ids=lambda view: view.name,
)
def test_a_view_holds_the_rows_of_the_demo(db: psycopg.Connection, truth: Shop, view: View) -> None:
    columns = ", ".join(f'"{name}"' for name in view.columns)
    of_ads = view in ADS_VIEWS
    expected = views_of(events())[view.name] if of_ads else shop.views(truth)[view.name].to_pylist()
    found = rows(db, f"SELECT {columns} FROM {view.name}")
    assert Counter(found) == Counter(tuple(row[name] for name in view.columns) for row in expected)
