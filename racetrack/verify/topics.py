"""Reads topics whole, up to known offsets, into DuckDB: kcat writes each message as a line of JSON
into a pipe, and DuckDB reads the pipes. No message ever is a Python object."""
# ruff: noqa: S608 - SQL is put together from names of the workload only

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

import duckdb

from racetrack import environment
from racetrack.errors import RacetrackError, SetupError
from racetrack.probes.broker import TopicOffsets
from racetrack.workload import SourceTopic

# Whatever is read, this is far beyond it; a broker that hangs must not hang the harness.
READ_WITHIN_S = 600.0
END_WITHIN_S = 2.0
# It reads ahead of whoever reads it, by default 64 MB.
_FETCH = ("-X", "queued.max.messages.kbytes=16384")


def take(
    db: duckdb.DuckDBPyConnection, bootstrap: str, topic: SourceTopic, ends: Sequence[int]
) -> None:
    """Fill the topic's table with all from its beginning up to these end offsets.

    Raises:
        RacetrackError: it could not be read, is no longer whole, or holds what is no event of it.
    """
    _take(db, bootstrap, topic, ends)
    if not topic.unfit:
        return
    bad = db.execute(
        f'SELECT "partition", "offset" FROM source.{topic.table} WHERE {topic.unfit} LIMIT 1'
    ).fetchone()
    if bad:
        raise RacetrackError(
            f"The message at partition {bad[0]}, offset {bad[1]} of {topic.name!r} is no"
            f" {topic.event}: it lacks a field."
        )


def take_all(db: duckdb.DuckDBPyConnection, bootstrap: str, topic: SourceTopic) -> None:
    """The same with all that the topic has now."""
    take(db, bootstrap, topic, TopicOffsets(bootstrap, topic.name).end_offsets())


def _take(
    db: duckdb.DuckDBPyConnection, bootstrap: str, topic: SourceTopic, ends: Sequence[int]
) -> None:
    _must_be_whole(bootstrap, topic.name)
    taken = 0
    for partition, end in enumerate(ends):
        if end == 0:
            continue
        which = ["-t", topic.name, "-p", str(partition), "-o", "beginning", "-c", str(end)]
        with _kcat(["-b", bootstrap, *which, *topic.form]) as pipe:
            taken = db.execute(topic.take, {"pipes": [f"/dev/fd/{pipe.fileno()}"]}).fetchall()[0][0]
        if taken != end:
            raise RacetrackError(
                f"Partition {partition} of {topic.name!r} gave {taken:,} messages of {end:,}."
            )


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
                f" {words or failure or f'it ended with {code}'}"
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
