"""`scripts/demo.sql`: what Materialize parses, and views that hold what `demo.py` says, on a real
PostgreSQL: the views' own text over small tables in the place of the sources."""

# ruff: noqa: S608  # queries are made of names that stand here

import re
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
import sqlglot
from sqlglot import TokenType, exp

from racetrack.config import REPO
from racetrack.engines.shared.tests.postgres import Postgres, running_postgres
from racetrack.workloads.shop.catalogue import VIEWS

SCRIPT = REPO / "scripts" / "demo.sql"
NOW_MS = 1_774_155_907_250
MINUTE_MS = 60_000

# What sqlglot's Materialize does not know, as Materialize's manual has it: kind → its whole form.
NAME, TEXT = r"\w+", r"'[^']*'"
AVRO = rf"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION {NAME}"
SEED = rf"SEED KEY SCHEMA {TEXT} VALUE SCHEMA {TEXT}"
INCLUDED = rf"(?:PARTITION|OFFSET|KEY) AS {NAME}"
KNOWN = {
    "CREATE CONNECTION": (
        rf"{NAME} TO (?:KAFKA \(BROKER {TEXT}, SECURITY PROTOCOL = 'PLAINTEXT'\)"
        rf"|CONFLUENT SCHEMA REGISTRY \(URL {TEXT}\))"
    ),
    "CREATE SOURCE": (
        rf"{NAME} FROM KAFKA CONNECTION {NAME} \(TOPIC {TEXT}\)"
        rf" (?:FORMAT (?:JSON|BYTES)|{AVRO}(?: {SEED})?)"
        rf"(?: INCLUDE {INCLUDED}(?:, {INCLUDED})*)?(?: ENVELOPE (?:DEBEZIUM|UPSERT))?"
    ),
    "CREATE SINK": (
        rf"{NAME} FROM {NAME} INTO KAFKA CONNECTION {NAME} \(TOPIC {TEXT}\)"
        rf" KEY \({NAME}\) NOT ENFORCED {AVRO} ENVELOPE UPSERT"
    ),
}
VARIABLES = ("kafka", "registry", "sink_topic")


def statements(script: Path = SCRIPT) -> list[str]:
    """The script's SQL, one statement each, after psql is through with it."""
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
    """What the script makes of a kind (a regular expression): name → statement."""
    found = {}
    for statement in statements(script):
        if match := re.match(rf"CREATE (?:{kind}) (\w+)", statement):
            found[match[1]] = statement
    return found


def known_kind(statement: str) -> object:
    """What kind of a statement Materialize takes it for; it must know it whole."""
    kind = next((kind for kind in KNOWN if statement.startswith(f"{kind} ")), None)
    if kind is None:
        parsed = sqlglot.parse_one(statement, read="materialize")
        assert not isinstance(parsed, exp.Command), statement
        return type(parsed)
    rest = " ".join(statement.removeprefix(kind).split())
    assert re.fullmatch(KNOWN[kind], rest), f"{kind} {rest}"
    return kind


def test_every_statement_is_one_that_materialize_accepts() -> None:
    assert {known_kind(statement) for statement in statements()} == {*KNOWN, exp.Create}


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


def test_no_source_brings_a_progress_that_is_in_the_way_of_a_view() -> None:
    views = created("MATERIALIZED VIEW|VIEW")
    sources = created("SOURCE")
    assert "pageviews_progress" in views
    assert not {f"{source}_progress" for source in sources} & {*views, *sources}


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], "redpanda:9092 http://redpanda:8081 high-value-users-sink"),
        (
            ["-v", "kafka=far:1", "-v", "registry=http://far:2", "-v", "sink_topic=t"],
            "far:1 http://far:2 t",
        ),
    ],
)
def test_addresses_are_the_stacks_unless_they_are_given(
    postgres: Postgres, given: list[str], expected: str
) -> None:
    head = SCRIPT.read_text().split("CREATE CONNECTION")[0]
    done = subprocess.run(
        ["psql", "-X", "-q", *given, "-d", postgres.url],
        input=f"{head}\n\\echo :kafka :registry :sink_topic\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == expected and not done.stderr


SOURCES = """
CREATE TABLE pageviews_json (data jsonb, partition int, message_offset numeric);
CREATE TABLE users (id bigint, email text);
CREATE TABLE items (id bigint, name text, category text);
CREATE TABLE purchases (
    id bigint, user_id bigint, item_id bigint, quantity bigint, purchase_price numeric);
CREATE TABLE dd_flagged_profiles_bytes (data bytea);
CREATE TABLE hvu_test_upserts (
    message_key bigint, id bigint, email text, lifetime_value numeric, purchases bigint);
CREATE FUNCTION mz_now() RETURNS timestamptz STABLE LANGUAGE sql AS
    $$ SELECT to_timestamp(current_setting('test.now_ms')::double precision / 1000) $$;
"""
ITEMS = range(1, 26)
USERS = [(1, "one@shop"), (2, "two@shop"), (3, None)]
# id, user, item, quantity, price. User 9 and item 99 are in no other table.
PURCHASES = [
    (1, 1, 3, 2, "100.50"),
    (2, 9, 3, 1, "10001.00"),
    (3, 2, 4, 10_000, "1.00"),  # 10,000 and not a cent above
    (4, 1, 99, 100, "98.01"),
]
FLAGGED = [
    b"1",
    b'"2"',
    b"1",
    b"007",
    b'"3',
    b'4"',
    b"x",
    b"",
    b"-5",
    b"5\n",
    b"6 ",
    b"\xff\xfe",
    b"1234567890123456789",
    None,
]


def pageviews() -> list[tuple[int, int, int, str, int]]:
    """Partition, offset, user, url, received_at in epoch ms."""
    rows = [(0, n, 1, "/products/3", NOW_MS - 700_000 + n) for n in range(4)]
    rows += [(1, n, 2, "/products/25", NOW_MS - 5_000_000) for n in range(5)]
    rows += [(1, 5, 2, "/products/77", NOW_MS - 5_000_000), (1, 6, 8, "/about", NOW_MS - 1)]
    # Of profile 1: twelve, the oldest three at the same time, in two partitions.
    rows += [(2, n, 3, "/profiles/1", NOW_MS - 50_000 + n) for n in range(9)]
    rows += [(2, 9, 3, "/profiles/1", NOW_MS - 600_000)]
    rows += [(3, n, 4, "/profiles/1", NOW_MS - 600_000) for n in (0, 1)]
    # Of profile 2: at the window's edge, and in the future.
    rows += [(4, 0, 9, "/profiles/2", NOW_MS - 599_999), (4, 1, 9, "/profiles/2", NOW_MS - 600_000)]
    rows += [(4, 2, 9, "/profiles/2", NOW_MS + 90_000), (4, 3, 9, "/profiles/2", NOW_MS - 599_998)]
    return rows


@pytest.fixture(scope="module")
def db(postgres: Postgres) -> Iterator[psycopg.Connection]:
    """The script's views over the tables above."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"SET test.now_ms = {NOW_MS}".encode())
        connection.execute(SOURCES.encode())
        cursor = connection.cursor()
        cursor.executemany(
            "INSERT INTO pageviews_json VALUES (jsonb_build_object('user_id', %s::bigint, 'url',"
            " %s::text, 'channel', 'web', 'received_at', %s::bigint), %s, %s)",
            [
                (user, url, at, partition, offset)
                for partition, offset, user, url, at in pageviews()
            ],
        )
        cursor.executemany("INSERT INTO users VALUES (%s, %s)", USERS)
        cursor.executemany(
            "INSERT INTO items VALUES (%s, %s, 'things')", [(n, f"item {n}") for n in ITEMS]
        )
        cursor.executemany("INSERT INTO purchases VALUES (%s, %s, %s, %s, %s)", PURCHASES)
        cursor.executemany(
            "INSERT INTO dd_flagged_profiles_bytes VALUES (%s)", [(data,) for data in FLAGGED]
        )
        for statement in created("MATERIALIZED VIEW|VIEW").values():
            connection.execute(statement.replace("CREATE MATERIALIZED", "CREATE", 1).encode())
        yield connection


def rows(db: psycopg.Connection, query: str) -> list[tuple[object, ...]]:
    return db.execute(query.encode()).fetchall()


def epoch_ms(column: str) -> str:
    return f"(extract(epoch FROM {column}) * 1000)::numeric"


def test_every_verified_view_is_there_with_its_columns(db: psycopg.Connection) -> None:
    from_topics = {"users", "items", "purchases"}
    assert from_topics <= created("SOURCE").keys()
    for view in VIEWS:
        if view.name not in from_topics:
            columns = ", ".join(f'"{name}"' for name in view.columns)
            rows(db, f"SELECT {columns} FROM {view.name}")


def test_every_index_is_on_something_that_is_there(db: psycopg.Connection) -> None:
    indexes = created("INDEX")
    assert len(indexes) > 3
    for statement in indexes.values():
        on = re.fullmatch(r"CREATE INDEX \w+ ON (\w+) \((\w+)\)", statement)
        assert on, statement
        rows(db, f"SELECT {on[2]} FROM {on[1]}")


def test_pageviews_are_every_message_once(db: psycopg.Connection) -> None:
    query = (
        'SELECT partition, "offset", user_id, url, '
        f"{epoch_ms('received_at')}::bigint FROM pageviews ORDER BY 1, 2"
    )
    assert rows(db, query) == sorted(pageviews())
    fractions = f"SELECT count(*) FROM pageviews WHERE {epoch_ms('received_at')} % 1 <> 0"
    assert rows(db, fractions) == [(0,)]


def test_progress_is_per_partition_and_its_summary_one_row(db: psycopg.Connection) -> None:
    assert rows(db, "SELECT * FROM pageviews_progress ORDER BY partition") == [
        (0, 4, NOW_MS - 700_000 + 3),
        (1, 7, NOW_MS - 1),
        (2, 10, NOW_MS - 50_000 + 8),
        (3, 2, NOW_MS - 600_000),
        (4, 4, NOW_MS + 90_000),
    ]
    assert rows(db, "SELECT * FROM pageviews_summary") == [(27, NOW_MS + 90_000)]


def test_the_summary_has_no_row_before_the_first_pageview(db: psycopg.Connection) -> None:
    with db.transaction(force_rollback=True):
        db.execute("TRUNCATE pageviews_json")
        assert rows(db, "SELECT * FROM pageviews_summary") == []


def test_items_have_their_row_sold_or_not_viewed_or_not(db: psycopg.Connection) -> None:
    assert rows(db, "SELECT * FROM purchases_by_item ORDER BY item_id") == [
        (3, Decimal("10101.50"), 2, 3),
        (4, Decimal("1.00"), 1, 10_000),
        (99, Decimal("98.01"), 1, 100),
    ]
    assert rows(db, "SELECT * FROM pageviews_by_item ORDER BY item_id") == [
        (3, 4),
        (25, 5),
        (77, 1),
    ]
    found = rows(db, "SELECT * FROM item_summary ORDER BY item_id")
    assert [row[0] for row in found] == list(ITEMS)
    by_id = {row[0]: row[1:] for row in found}
    assert by_id[3] == ("item 3", "things", Decimal("10101.50"), 2, 3, 4, 0.5)
    assert by_id[4] == ("item 4", "things", Decimal("1.00"), 1, 10_000, 0, None)
    assert by_id[25] == ("item 25", "things", 0, 0, 0, 5, 0.0)
    assert by_id[1] == ("item 1", "things", 0, 0, 0, 0, None)


def test_of_equal_items_the_lower_id_is_first_and_no_rate_is_last(db: psycopg.Connection) -> None:
    lower = [n for n in ITEMS if n not in {3, 25}][:18]
    viewed = rows(db, "SELECT item_id FROM top_viewed_items ORDER BY pageviews DESC, item_id")
    assert [row[0] for row in viewed] == [25, 3, *lower]
    converting = rows(
        db,
        "SELECT item_id FROM top_converting_items"
        " ORDER BY conversion_rate DESC NULLS LAST, item_id",
    )
    assert [row[0] for row in converting] == [3, 25, *lower]


def test_the_window_ends_at_ten_minutes_and_is_open_to_the_future(db: psycopg.Connection) -> None:
    query = (
        f"SELECT user_id, {epoch_ms('received_at_minute')}::bigint, pageviews"
        " FROM profile_views_per_minute_last_10 ORDER BY 1, 2"
    )

    def minute(at_ms: int) -> int:
        return at_ms // MINUTE_MS * MINUTE_MS

    assert rows(db, query) == [
        (1, minute(NOW_MS - 50_000), 9),
        (2, minute(NOW_MS - 599_999), 2),
        (2, minute(NOW_MS + 90_000), 1),
    ]


def test_the_last_ten_are_decided_by_partition_and_offset_where_times_are_equal(
    db: psycopg.Connection,
) -> None:
    query = (
        'SELECT partition, "offset", viewer_id FROM profile_views WHERE owner_id = {} ORDER BY 1, 2'
    )
    assert rows(db, query.format(1)) == [*((2, n, 3) for n in range(9)), (3, 1, 4)]
    assert rows(db, query.format(2)) == [(4, n, 9) for n in range(4)]
    assert rows(db, "SELECT count(*) FROM profile_views") == [(14,)]


def test_emails_are_null_where_there_is_no_such_user(db: psycopg.Connection) -> None:
    query = (
        "SELECT DISTINCT owner_id, viewer_id, owner_email, viewer_email FROM profile_views_enriched"
        " ORDER BY 1, 2"
    )
    assert rows(db, query) == [
        (1, 3, "one@shop", None),
        (1, 4, "one@shop", None),
        (2, 9, "two@shop", None),
    ]
    assert rows(db, "SELECT count(*) FROM profile_views_enriched") == [(14,)]


def test_flags_are_numbers_each_once_and_anything_else_is_ignored(db: psycopg.Connection) -> None:
    # One quote is as good as two: demo.py's pattern has each of them optional.
    flagged = [(1,), (2,), (3,), (4,), (7,)]
    assert rows(db, "SELECT user_id FROM dd_flagged_profiles ORDER BY 1") == flagged
    query = 'SELECT user_id, partition, "offset", pageview_type, target_id'
    found = rows(db, f"{query} FROM dd_flagged_profile_view ORDER BY 2, 3")
    everything = rows(db, f"{query} FROM pageviews_stg ORDER BY 2, 3")
    assert found == [row for row in everything if row[0] in {1, 2, 3, 4, 7}]
    assert 0 < len(found) < len(everything)


def test_high_value_is_more_than_ten_thousand_to_the_cent(db: psycopg.Connection) -> None:
    assert rows(db, "SELECT * FROM high_value_users ORDER BY id") == [
        (1, "one@shop", Decimal("10002.00"), 2),
        (9, None, Decimal("10001.00"), 1),
    ]
    kind = "SELECT pg_typeof(lifetime_value)::text, scale(lifetime_value) FROM high_value_users"
    assert set(rows(db, kind)) == {("numeric", 2)}
