"""Reads topics whole, up to known offsets, into DuckDB: kcat writes each message as a line of JSON
into a pipe, and DuckDB reads the pipes. Only messages that are unfit become Python objects."""
# ruff: noqa: S608 - SQL is put together from names of the workload only

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

import duckdb
from confluent_kafka import Consumer, TopicPartition

from racetrack import environment
from racetrack.errors import RacetrackError, SetupError
from racetrack.kafka_client import is_retriable
from racetrack.probes.broker import TopicOffsets
from racetrack.verify.normal import short
from racetrack.workloads.contract import SourceTopic, fault_of

# Whatever is read, this is far beyond it; a broker that hangs must not hang the harness.
READ_WITHIN_S = 600.0
END_WITHIN_S = 2.0
ONE_WITHIN_S = 10.0
# It reads ahead of whoever reads it, by default 64 MB.
_FETCH = ("-X", "queued.max.messages.kbytes=16384")
# How many unfit messages are looked at and named; of more, only the number is known.
LOOKED_AT, NAMED = 200, 5


@dataclass
class Unfit:
    """The messages of a topic that are none of its events: how many, and the first of them."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, where: str, what: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(f"{where}: {what}")


def take(
    db: duckdb.DuckDBPyConnection, bootstrap: str, topic: SourceTopic, ends: Sequence[int]
) -> Unfit:
    """Fill the topic's table with all from its beginning up to these end offsets; what is none of
    its events is left out, and returned.

    Raises:
        RacetrackError: it could not be read, or is no longer whole.
    """
    _must_be_whole(bootstrap, topic.name)
    for partition, end in enumerate(ends):
        if end:
            _take(db, bootstrap, topic, partition, end)
    unfit = Unfit()
    if topic.invalid_if:
        table = f"source.{topic.table}"
        db.execute(f'DELETE FROM {table} WHERE "partition" IS NULL OR {topic.invalid_if}')
        counts = f'SELECT "partition", count(*) FROM {table} GROUP BY "partition"'
        fit = dict(db.execute(counts).fetchall())
        for partition, end in enumerate(ends):
            if fit.get(partition, 0) != end:
                _sort_out(db, bootstrap, topic, partition, end, unfit)
    return unfit


def take_all(db: duckdb.DuckDBPyConnection, bootstrap: str, topic: SourceTopic) -> Unfit:
    """The same with all that the topic has now."""
    return take(db, bootstrap, topic, TopicOffsets(bootstrap, topic.name).end_offsets())


def _take(
    db: duckdb.DuckDBPyConnection, bootstrap: str, topic: SourceTopic, partition: int, end: int
) -> None:
    which = ["-t", topic.name, "-p", str(partition), "-o", "beginning", "-c", str(end)]
    with _kcat(["-b", bootstrap, *which, *topic.kcat_args]) as pipe:
        taken = db.execute(topic.insert_sql, {"pipes": [f"/dev/fd/{pipe.fileno()}"]}).fetchall()[0][
            0
        ]
    # A message that is no line of JSON may come as several.
    if taken < end:
        raise RacetrackError(
            f"Partition {partition} of {topic.name!r} gave {taken:,} messages of {end:,}."
        )


def _sort_out(
    db: duckdb.DuckDBPyConnection,
    bootstrap: str,
    topic: SourceTopic,
    partition: int,
    end: int,
    unfit: Unfit,
) -> None:
    """Look again at each message that is no row yet: JSON may have line breaks."""
    table = f"source.{topic.table}"
    offsets = [
        row[0]
        for row in db.execute(
            f"""SELECT n FROM range({end}) AS all_of(n) ANTI JOIN
                (SELECT "offset" AS n FROM {table} WHERE "partition" = {partition}) USING (n)
                ORDER BY n"""
        ).fetchall()
    ]
    unfit.count += len(offsets[LOOKED_AT:])
    for offset, value in _values(bootstrap, topic.name, partition, offsets[:LOOKED_AT]):
        if fault := fault_of(value, topic):
            what = f"{fault.field}: {fault.reason}" if fault.field else fault.reason
            unfit.add(f"partition {partition}, offset {offset}", what)
        else:
            _put_back(db, topic, partition, offset, value or b"")


def _put_back(
    db: duckdb.DuckDBPyConnection, topic: SourceTopic, partition: int, offset: int, value: bytes
) -> None:
    line = {"partition": partition, "offset": offset, "value": json.loads(value)}
    with TemporaryDirectory(prefix="racetrack-verify-") as folder:
        file = Path(folder) / "line.json"
        file.write_text(json.dumps(line) + "\n")
        db.execute(topic.insert_sql, {"pipes": [str(file)]})


def _values(
    bootstrap: str, topic: str, partition: int, offsets: Sequence[int]
) -> Iterator[tuple[int, bytes | None]]:
    """The messages at these offsets, one by one."""
    if not offsets:
        return
    settings = {"bootstrap.servers": bootstrap, "group.id": "racetrack-unfit", "log_level": 2}
    with closing(Consumer({**settings, "enable.auto.commit": False})) as consumer:
        for offset in offsets:
            consumer.assign([TopicPartition(topic, partition, offset)])
            message = consumer.poll(ONE_WITHIN_S)
            while message and (error := message.error()) and is_retriable(error):
                message = consumer.poll(ONE_WITHIN_S)
            if message is None or message.error() or message.offset() != offset:
                raise RacetrackError(
                    f"The message at partition {partition}, offset {offset} of {topic!r} can't be"
                    f" read: {message.error() if message else 'no answer'}."
                )
            yield offset, message.value()


def _must_be_whole(bootstrap: str, topic: str) -> None:
    """A view of all pageviews can't be checked against some of them."""
    gone = sum(TopicOffsets(bootstrap, topic).begin_offsets())
    if gone:
        raise RacetrackError(
            f"The broker no longer has the first {gone:,} messages of {topic!r}, so that views of"
            " all of them can't be checked. Set KAFKA_RETENTION_BYTES=-1."
        )


@contextmanager
def _kcat(arguments: Sequence[str]) -> Iterator[IO[bytes]]:
    """kcat's output while it consumes; when it is left, kcat has ended well.

    Raises:
        RacetrackError: kcat failed, or what it gave could not be taken.
    """
    with TemporaryFile() as said:
        kcat = _start(arguments, said)
        watchdog = threading.Timer(READ_WITHIN_S, kcat.kill)
        watchdog.start()
        failure: duckdb.Error | None = None
        try:
            assert kcat.stdout  # noqa: S101  # that is what PIPE is for
            yield kcat.stdout
        except duckdb.Error as error:
            failure = error
        finally:
            watchdog.cancel()
            code = _end(kcat)
        if failure or code:
            said.seek(0)
            words = said.read().decode(errors="replace").strip()
            raise RacetrackError(
                f"A topic could not be read with `kcat {' '.join(arguments)}`:"
                f" {words or (short(failure) if failure else f'it ended with {code}')}"
            ) from failure


def _start(arguments: Sequence[str], said: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            ["kcat", "-C", "-q", *_FETCH, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment.of_program({}),
        )
    except FileNotFoundError:
        raise SetupError(
            "kcat, which reads topics, is missing: apt-get install kcat (macOS: brew install kcat)."
        ) from None


def _end(kcat: subprocess.Popen[bytes]) -> int:
    """Its exit code; one that is still writing, which nobody reads any more, is ended."""
    assert kcat.stdout  # noqa: S101
    # Whoever has read to the end finds it exiting; whoever has not makes it fail at once.
    kcat.stdout.close()
    try:
        return kcat.wait(END_WITHIN_S)
    except subprocess.TimeoutExpired:
        kcat.kill()
        return kcat.wait()
