"""Loads the sources (tables and topics) into DuckDB, and computes the expected rows of views."""
# ruff: noqa: S608 - the SQL contains names of the workload only

import json
import secrets
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import confluent_kafka
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, Message, TopicPartition

from racetrack import environment
from racetrack.config import Settings
from racetrack.errors import RacetrackError, SetupError
from racetrack.kafka_client import is_retriable
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.probes.broker import TopicOffsets
from racetrack.verify import compare
from racetrack.verify.compare import short
from racetrack.workloads.contract import ColumnType, SourceTopic, View, Workload
from racetrack.workloads.message import TEXT_BYTES, fault_of

# DuckDB's memory limit. Larger data spills to disk.
MEMORY = "2GB"
# Minimum width of decimal columns. With the maximum width, products and sums in SQL would overflow.
DECIMAL_DIGITS, DECIMAL_SCALE = 12, 2


def open_database(workload: Workload, spill: Path) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database with empty tables for the topics. If it runs out of memory, it
    writes into the folder `spill`.

    The other functions add tables: to the schema `source`, MySQL's tables and the messages of
    topics; to the schema `expected`, the expected rows of each view. Times are epoch
    milliseconds."""
    db = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(spill)})
    # Prevent downloads of extensions.
    db.execute("SET autoinstall_known_extensions = false; SET TimeZone = 'UTC'")
    db.execute("CREATE SCHEMA source; CREATE SCHEMA expected")
    db.execute(workload.create)
    return db


def take_table(db: duckdb.DuckDBPyConnection, view: View, rows: Iterable[Sequence[Any]]) -> None:
    """Create or replace `source.<view>` from the rows of a MySQL table. Values are as PyMySQL
    returns them, in the order of the view's columns.

    Raises:
        NotComputed: a value does not fit its column's type; the message names the column.
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(view.columns)
    taken = {
        name: _column(view, name, kind, column)
        for (name, kind), column in zip(view.columns.items(), columns, strict=True)
    }
    db.register("taken", pa.table(taken))
    db.execute(f"CREATE OR REPLACE TABLE source.{view.name} AS SELECT * FROM taken")
    db.unregister("taken")


def take_delivered(db: duckdb.DuckDBPyConnection, view: View, table: pa.Table) -> None:
    """Create `source.<view>` from `table`, the rows read from the topic of a MySQL table.

    Raises:
        WrongColumns: a column is missing, or can't be compared; the message names it.
    """
    compare.normalize_engine(db, table, view, "from_topic")
    columns = ", ".join(
        f'"{name}"::{_narrowest(db, name)} AS "{name}"'
        if kind is ColumnType.DECIMAL
        else f'"{name}"'
        for name, kind in view.columns.items()
    )
    db.execute(f"CREATE OR REPLACE TABLE source.{view.name} AS SELECT {columns} FROM from_topic")


def _narrowest(db: duckdb.DuckDBPyConnection, column: str) -> str:
    """Return the narrowest type for the decimals of a column; products and sums of wider types may
    overflow."""
    rows = db.execute(
        f"""SELECT coalesce(max(length(split_part(rtrim(x, '0'), '.', 2))), 0),
                   coalesce(max(length(ltrim(split_part(x, '.', 1), '-'))), 0)
            FROM (SELECT "{column}"::VARCHAR AS x FROM from_topic)"""
    ).fetchall()
    scale, whole = rows[0]
    return _decimal(whole, scale)


def _decimal(whole: int, scale: int) -> str:
    scale = max(scale, DECIMAL_SCALE)
    return f"DECIMAL({min(38, max(whole + scale, DECIMAL_DIGITS))}, {scale})"


def _column(view: View, name: str, kind: ColumnType, values: Sequence[Any]) -> pa.Array:
    try:
        return _AS_ARROW[kind](values)
    except (pa.ArrowException, ArithmeticError, ValueError, TypeError) as error:
        raise compare.NotComputed(
            f"The column {name} of {view.name} in MySQL can't be compared as {kind.value}:"
            f" {compare.short(error)}"
        ) from error


def _integers(values: Sequence[Any]) -> pa.Array:
    if all(value is None or abs(value) < 2**63 for value in values):
        return pa.array(values, pa.int64())
    return pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(38, 0))


def _texts(values: Sequence[Any]) -> pa.Array:
    return pa.array(
        [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values], pa.string()
    )


def _decimals(values: Sequence[Any]) -> pa.Array:
    exact = [None if value is None else Decimal(value) for value in values]
    parts = [value.as_tuple() for value in exact if value is not None]
    scale = max([DECIMAL_SCALE, *(-int(part.exponent) for part in parts)])
    whole = max([0, *(len(part.digits) + int(part.exponent) for part in parts)])
    return pa.array(exact, pa.decimal128(max(DECIMAL_DIGITS, whole + scale), scale))


def _times(values: Sequence[Any]) -> pa.Array:
    """Return epoch milliseconds; NO_TIME_MS for invalid dates, which PyMySQL returns as text."""
    dates = [None if isinstance(value, str) else value for value in values]
    ms = pa.array(dates, pa.timestamp("us")).cast(pa.int64())
    ms = pc.divide(ms, 1000)
    if not any(isinstance(value, str) for value in values):
        return ms
    return pc.if_else(pa.array([isinstance(v, str) for v in values]), compare.NO_TIME_MS, ms)


_AS_ARROW: Mapping[ColumnType, Callable[[Sequence[Any]], pa.Array]] = {
    ColumnType.INTEGER: _integers,
    ColumnType.TEXT: _texts,
    ColumnType.DECIMAL: _decimals,
    ColumnType.TIME: _times,
}


def expect(db: duckdb.DuckDBPyConnection, workload: Workload, view: View) -> None:
    """Create `expected.<view>`. Views that its SQL reads must have been created before.

    Raises:
        NotComputed: DuckDB failed, for example by an overflow.
    """
    sql = (workload.sql / f"{view.name}.sql").read_text()
    try:
        db.execute(f"CREATE OR REPLACE TABLE expected.{view.name} AS {sql}")
    except duckdb.Error as error:
        raise compare.NotComputed(
            f"What {view.name} should hold can't be computed: {compare.short(error)}"
        ) from error


def set_variables(db: duckdb.DuckDBPyConnection, workload: Workload, settings: Settings) -> None:
    """Set the settings that the workload's SQL reads."""
    for name in workload.variables:
        db.execute(f"SET VARIABLE {name} = {getattr(settings, name)}")


def between(db: duckdb.DuckDBPyConnection, from_ms: int, until_ms: int) -> None:
    """Set the bounds between which the end of the engine's moving window (epoch milliseconds) must
    lie, for the SQL of such views."""
    db.execute(f"SET VARIABLE from_ms = {from_ms}; SET VARIABLE until_ms = {until_ms}")


# Generous: it only prevents a hanging broker from blocking the harness.
READ_WITHIN_S = 600.0
END_WITHIN_S = 2.0
ONE_WITHIN_S = 10.0
# Limit of kcat's read-ahead, which is 64 MB by default.
_FETCH = ("-X", "queued.max.messages.kbytes=16384")
# Largest number of invalid messages that are described; the rest is only counted.
NAMED = 5
# Messages that are skipped rather than sought; and that are inserted together.
SKIPPED, TOGETHER = 10_000, 10_000
# kcat's output: a random mark, partition, offset, number of bytes, and the message. Valid messages
# contain no separator, because JSON escapes it. DuckDB skips lines that are not such a row, for
# example parts of a message with line breaks; the mark prevents that such a part looks like a row.
_SEPARATOR = "\x1f"
_LINE = _SEPARATOR.join(("{mark}", "%p", "%o", "%S", "%s")) + "\n"
_LINES = f"""
read_csv($pipes, auto_detect = false, header = false, delim = '{_SEPARATOR}', new_line = '\\n',
    quote = '', escape = '', strict_mode = false, ignore_errors = true, columns = {{
    mark: 'VARCHAR', "partition": 'INTEGER', "offset": 'BIGINT', bytes: 'BIGINT', value: 'VARCHAR'
}})
"""


@dataclass
class Unfit:
    """Number of invalid messages in a topic, and descriptions of the first NAMED."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, where: str, what: str) -> None:
        """Count an invalid message at position `where`; `what` describes its fault."""
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(f"{where}: {what}")


@dataclass(frozen=True)
class KafkaAccess:
    """The clients that read topics, and the time that kcat may take for a partition, in seconds."""

    open_offsets: Callable[[KafkaEndpoint, str], TopicOffsets] = TopicOffsets
    open_consumer: Callable[[dict[str, Any]], Consumer] = Consumer
    read_within_s: float = READ_WITHIN_S


KAFKA = KafkaAccess()


def take_topic(
    db: duckdb.DuckDBPyConnection,
    where: KafkaEndpoint,
    topic: SourceTopic,
    ends: Sequence[int],
    kafka: KafkaAccess = KAFKA,
) -> Unfit:
    """Fill the topic's table with all messages from the beginning to these end offsets. Invalid
    messages are left out and returned.

    For speed, kcat writes each message as a line into a pipe, and DuckDB reads the pipe; only
    messages that do not look as usual become Python objects.

    Raises:
        RacetrackError: the topic could not be read, or the broker has deleted its first messages.
    """
    _must_be_whole(kafka.open_offsets(where, topic.name), topic.name)
    unfit = Unfit()
    for partition, end in enumerate(ends):
        if end and (others := _take_usual(db, where, topic, partition, end, kafka.read_within_s)):
            with closing(kafka.open_consumer(_settings(where))) as consumer:
                values = _values(consumer, where.topic(topic.name), partition, others)
                _take_others(db, topic, partition, values, unfit)
    return unfit


def take_whole_topic(
    db: duckdb.DuckDBPyConnection,
    where: KafkaEndpoint,
    topic: SourceTopic,
    kafka: KafkaAccess = KAFKA,
) -> Unfit:
    """Fill the topic's table with all messages up to the current end offsets; see `take_topic`."""
    ends = kafka.open_offsets(where, topic.name).end_offsets()
    return take_topic(db, where, topic, ends, kafka)


def _settings(where: KafkaEndpoint) -> dict[str, Any]:
    return where.librdkafka(
        {"group.id": "racetrack-unfit", "log_level": 2, "enable.auto.commit": False}
    )


def _take_usual(
    db: duckdb.DuckDBPyConnection,
    where: KafkaEndpoint,
    topic: SourceTopic,
    partition: int,
    end: int,
    within_s: float,
) -> list[int]:
    """Insert the messages that match `SourceTopic.usual`; return the offsets of the others, unless
    these are to be ignored."""
    row = _row(db, topic)
    mark = secrets.token_hex(8)
    which = ["-t", where.topic(topic.name), "-p", str(partition), "-o", "beginning"]
    form = ["-c", str(end), "-f", _LINE.format(mark=mark)]
    with _kcat(where, [*which, *form], within_s) as pipe:
        db.execute(
            f"""INSERT INTO source.{topic.table} SELECT {row} FROM {_LINES}
                WHERE mark = $mark AND strlen(value) = bytes AND bytes <= {TEXT_BYTES}
                AND regexp_full_match(value, $usual)""",
            {"pipes": [f"/dev/fd/{pipe.fileno()}"], "usual": topic.usual, "mark": mark},
        )
    if not topic.fields:
        return []
    rows = db.execute(
        f"""SELECT n FROM range({end}) AS all_of(n) ANTI JOIN
            (SELECT "offset" AS n FROM source.{topic.table} WHERE "partition" = {partition})
            USING (n) ORDER BY n"""
    ).fetchall()
    return [n for (n,) in rows]


def _row(db: duckdb.DuckDBPyConnection, topic: SourceTopic) -> str:
    """Return SQL that selects the columns of a topic's table from the columns `partition`, `offset`
    and `value` of its valid messages."""
    if not topic.fields:
        return "value"
    named = {*topic.fields, *(record.name for record in topic.records)}
    columns = {name: type_ for name, type_ in _columns(db, topic).items() if name in named}
    # With records, the strict function would refuse that all but one are missing.
    transform = "json_transform" if topic.records else "json_transform_strict"
    return f"""partition, "offset", unnest({transform}(value, '{json.dumps(columns)}'))"""


def _columns(db: duckdb.DuckDBPyConnection, topic: SourceTopic) -> dict[str, str]:
    """Return the columns of a topic's table, with their types."""
    rows = db.execute(f"DESCRIBE source.{topic.table}").fetchall()
    return {name: type_ for name, type_, *_ in rows}


def _take_others(
    db: duckdb.DuckDBPyConnection,
    topic: SourceTopic,
    partition: int,
    values: Iterator[tuple[int, bytes | None]],
    unfit: Unfit,
) -> None:
    """Insert messages that are valid, though they do not look as usual; add the others to
    `unfit`."""
    row = _row(db, topic)
    while batch := list(islice(values, TOGETHER)):
        valid = []
        for offset, value in batch:
            if fault := fault_of(value, topic):
                what = f"{fault.field}: {fault.reason}" if fault.field else fault.reason
                unfit.add(f"partition {partition}, offset {offset}", what)
            else:
                valid.append((partition, offset, (value or b"").decode()))
        if valid:
            names = ("partition", "offset", "value")
            db.register("taken", pa.table(dict(zip(names, zip(*valid, strict=True), strict=True))))
            db.execute(f"INSERT INTO source.{topic.table} SELECT {row} FROM taken")
            db.unregister("taken")


def _values(
    consumer: Consumer, topic: str, partition: int, offsets: Sequence[int]
) -> Iterator[tuple[int, bytes | None]]:
    """Yield the messages at these offsets, which are in ascending order."""
    at = -1 - SKIPPED
    for offset in offsets:
        if offset - at > SKIPPED:
            consumer.assign([TopicPartition(topic, partition, offset)])
        message = _next(consumer)
        while message and not message.error() and int(message.offset() or 0) < offset:
            message = _next(consumer)
        if message is None or message.error() or message.offset() != offset:
            raise RacetrackError(
                f"The message at partition {partition}, offset {offset} of {topic!r} can't be"
                f" read: {message.error() if message else 'no answer'}."
            )
        at = offset + 1
        yield offset, message.value()


def _next(consumer: Consumer) -> Message | None:
    message = consumer.poll(ONE_WITHIN_S)
    while message and (error := message.error()) and is_retriable(error):
        message = consumer.poll(ONE_WITHIN_S)
    return message


def _must_be_whole(offsets: TopicOffsets, topic: str) -> None:
    """Raise an error if the broker has deleted messages, since views cover all messages."""
    gone = sum(offsets.begin_offsets())
    if gone:
        raise RacetrackError(
            f"The broker no longer has the first {gone:,} messages of {topic!r}, so views of all"
            " of them can't be checked. Set KAFKA_RETENTION_BYTES=-1."
        )


@contextmanager
def _kcat(where: KafkaEndpoint, arguments: Sequence[str], within_s: float) -> Iterator[IO[bytes]]:
    """Run kcat for at most `within_s`, while the caller reads its output inside the context.

    Raises:
        RacetrackError: kcat failed, or DuckDB could not read its output.
    """
    arguments = ["-b", str(where), *arguments]
    with TemporaryFile() as log:
        kcat = _start(where, arguments, log)
        watchdog = threading.Timer(within_s, kcat.kill)
        watchdog.start()
        failure: duckdb.Error | None = None
        try:
            assert kcat.stdout  # noqa: S101  # it is a pipe
            yield kcat.stdout
        except duckdb.Error as error:
            failure = error
        finally:
            watchdog.cancel()
            code = _end(kcat)
        if failure or code:
            log.seek(0)
            errors = log.read().decode(errors="replace").strip()
            raise RacetrackError(
                f"A topic could not be read with `kcat {' '.join(arguments)}`:"
                f" {errors or (short(failure) if failure else f'it ended with {code}')}"
            ) from failure


def _start(
    where: KafkaEndpoint, arguments: Sequence[str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    try:
        # The properties contain secrets, so they are neither arguments nor a named file.
        with TemporaryFile("w+") as properties:
            lines = where.librdkafka_properties.items()
            properties.writelines(f"{name}={value}\n" for name, value in lines)
            properties.seek(0)
            options = ["-F", f"/dev/fd/{properties.fileno()}"] if where.is_elsewhere else []
            return subprocess.Popen(
                ["kcat", *options, "-C", "-q", *_FETCH, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment.of_program(_newer_librdkafka() if where.is_elsewhere else {}),
                pass_fds=[properties.fileno()],
            )
    except FileNotFoundError:
        raise SetupError(
            "kcat, which reads topics, is missing: apt-get install kcat (macOS: brew install kcat)."
        ) from None


def _newer_librdkafka() -> dict[str, str]:
    """Return environment variables with which kcat uses the librdkafka of the package
    confluent-kafka: Kafka 4.3 refuses SCRAM logins of Debian's librdkafka 2.0."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    libraries = sorted(folder.glob("librdkafka*.so*"))
    return {"LD_PRELOAD": str(libraries[0])} if libraries else {}


def _end(kcat: subprocess.Popen[bytes]) -> int:
    """Close kcat's output and return its exit code; kill kcat if it does not exit."""
    assert kcat.stdout  # noqa: S101
    # After a complete read, kcat exits by itself. After an incomplete one, closing the pipe makes
    # it fail.
    kcat.stdout.close()
    try:
        return kcat.wait(END_WITHIN_S)
    except subprocess.TimeoutExpired:
        kcat.kill()
        return kcat.wait()
