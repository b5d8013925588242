"""Tests that a topic is read completely or not at all, and that problems between kcat and DuckDB
are reported. kcat is simulated by a script; the end-to-end tests use the real one."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import duckdb
import pytest
from confluent_kafka import Consumer, TopicPartition

from racetrack.errors import RacetrackError, SetupError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.broker import TopicOffsets
from racetrack.verify import sources
from racetrack.workloads.contract import find_workload
from racetrack.workloads.shop.harness import FLAGGED, PAGEVIEWS
from tests.json_messages import ROWS

VIEW = '{"user_id": 7, "url": "/products/1", "channel": "social", "received_at": 1790000000000}'


def kafka(
    begin: Sequence[int] = (0, 0), values: Sequence[bytes | None] = (), within_s: float = 60.0
) -> sources.KafkaAccess:
    """Return a broker whose topic begins at these offsets, with these messages in each
    partition."""
    broker = SimpleNamespace(begin_offsets=lambda: [*begin], end_offsets=lambda: [2])
    consumer = cast(Consumer, OneByOne(values))
    return sources.KafkaAccess(lambda *_: cast(TopicOffsets, broker), lambda _: consumer, within_s)


@pytest.fixture
def kcat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path at which `play` writes a script that takes kcat's place. The script has the
    variables `partition` and `count`."""
    script = tmp_path / "kcat"
    monkeypatch.setenv("PATH", str(tmp_path))
    return script


def play(script: Path, body: str) -> None:
    check = (
        "import sys; a = sys.argv; partition, count = a[a.index('-p') + 1], a[a.index('-c') + 1]"
    )
    script.write_text(f"#!{sys.executable}\n{check}\n{body}\n")
    script.chmod(0o755)


SOMEWHERE = KafkaEndpoint("somewhere:9092")


def lines(values: Sequence[bytes | None]) -> str:
    """Return the body of a kcat that prints the messages of a partition in the format of `-f`."""
    return f"""
form = a[a.index('-f') + 1].encode().replace(b'\\\\n', b'\\n')
for n, value in enumerate({list(values)!r}[: int(count)]):
    size = -1 if value is None else len(value)
    row = [(b'%p', partition), (b'%o', n), (b'%S', size)]
    line = form
    for name, number in row:
        line = line.replace(name, str(number).encode())
    sys.stdout.buffer.write(line.replace(b'%s', value or b''))
sys.stdout.flush()
"""


MANY_VIEWS = lines([VIEW.encode()] * 20)


def test_every_partition_is_taken_up_to_its_end(db: duckdb.DuckDBPyConnection, kcat: Path) -> None:
    play(kcat, MANY_VIEWS)
    sources.take_topic(db, SOMEWHERE, PAGEVIEWS, [3, 0, 1], kafka())
    rows = db.execute('SELECT "partition", "offset" FROM source.pageviews ORDER BY ALL').fetchall()
    assert rows == [(0, 0), (0, 1), (0, 2), (2, 0)]
    whole = db.execute('SELECT * EXCLUDE ("partition", "offset") FROM source.pageviews').fetchone()
    assert whole == (7, "/products/1", "social", 1_790_000_000_000)


def test_flags_are_taken_as_they_are(db: duckdb.DuckDBPyConnection, kcat: Path) -> None:
    play(kcat, lines([b'"17"', None, b"17", b"17 ", b"1e3", b"\xff", b'"1', b"17\n"]))
    sources.take_topic(db, SOMEWHERE, FLAGGED, [8], kafka())
    flags = db.execute("SELECT * FROM source.dd_flagged_profiles").fetchall()
    assert flags == [('"17"',), ("17",), ('"1',)]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (MANY_VIEWS + "print('no broker', file=sys.stderr); sys.exit(1)", "no broker"),
        (MANY_VIEWS.replace("int(count)", "1"), "offset 1 of 'pageviews' can't be read: no answer"),
        ("import time; time.sleep(60)", "ended with -9"),
    ],
)
def test_what_goes_wrong_is_reported(
    db: duckdb.DuckDBPyConnection, kcat: Path, body: str, says: str
) -> None:
    play(kcat, body)
    with pytest.raises(RacetrackError, match=says):
        sources.take_topic(db, SOMEWHERE, PAGEVIEWS, [3], kafka(within_s=2.0))


def test_a_lost_beginning_or_no_kcat_is_refused(db: duckdb.DuckDBPyConnection, kcat: Path) -> None:
    with pytest.raises(RacetrackError, match=r"first 12 messages.*KAFKA_RETENTION_BYTES"):
        sources.take_topic(db, SOMEWHERE, PAGEVIEWS, [3, 20], kafka(begin=[0, 12]))
    with pytest.raises(SetupError, match="apt-get install kcat"):
        sources.take_topic(db, SOMEWHERE, PAGEVIEWS, [3], kafka())


class OneByOne:
    """A fake consumer of a partition with these messages."""

    def __init__(self, messages: Sequence[bytes | None]) -> None:
        self._messages = messages
        self._offset = 0

    def assign(self, wanted: list[TopicPartition]) -> None:
        (only,) = wanted
        self._offset = only.offset

    def poll(self, _within_s: float) -> SimpleNamespace | None:
        if self._offset >= len(self._messages):
            return None
        offset, value = self._offset, self._messages[self._offset]
        self._offset += 1
        return SimpleNamespace(error=lambda: None, offset=lambda: offset, value=lambda: value)

    def close(self) -> None:
        pass


def test_what_is_no_pageview_is_left_out_and_named(
    db: duckdb.DuckDBPyConnection, kcat: Path
) -> None:
    wrong = [None, b"hello", b'{"user_id": 7}', VIEW.replace("/1", "/x").encode()]
    values = [VIEW.encode(), *wrong, VIEW.encode()]
    play(kcat, lines(values))
    unfit = sources.take_topic(db, SOMEWHERE, PAGEVIEWS, [len(values)], kafka(values=values))
    rows = db.execute('SELECT "offset", user_id FROM source.pageviews ORDER BY ALL').fetchall()
    assert rows == [(0, 7), (5, 7)]
    assert unfit.count == 4
    texts = ("tombstone", "'hello'", "missing", "url")
    for offset, (message, text) in enumerate(zip(unfit.first, texts, strict=True), start=1):
        assert message.startswith(f"partition 0, offset {offset}: ") and text in message


@pytest.mark.parametrize("workload", ["shop", "ads"])
def test_only_messages_that_all_parsers_read_alike_are_taken(
    kcat: Path, tmp_path: Path, workload: str
) -> None:
    topic = find_workload(workload).topic
    rows = [row for row in ROWS for _ in range(2)]
    values = [row.of(topic) for row in rows]
    play(kcat, lines(values))
    with sources.open_database(find_workload(workload), tmp_path / "spill") as db:
        unfit = sources.take_topic(db, SOMEWHERE, topic, [len(values)], kafka(values=values))
        text = "channel" if workload == "shop" else "event_type"
        select = f'"offset", {text}, {topic.due_field} FROM source.{topic.table}'
        taken = db.execute(f"SELECT {select} ORDER BY ALL").fetchall()
    assert taken == [(n, row.text, row.due_ms) for n, row in enumerate(rows) if row.is_valid]
    assert unfit.count == sum(not row.is_valid for row in rows)


def test_many_unusual_messages_are_taken(db: duckdb.DuckDBPyConnection, kcat: Path) -> None:
    values = [VIEW.replace(" ", "").encode(), VIEW.encode()] * 15_000
    play(kcat, lines(values))
    sources.take_topic(db, SOMEWHERE, PAGEVIEWS, [len(values)], kafka(values=values))
    assert db.execute("SELECT count(*), max(url) FROM source.pageviews").fetchall() == [
        (len(values), "/products/1")
    ]
