"""Reads topics whole, up to known offsets, into DuckDB: kcat writes each message as a line of JSON
into a pipe, and DuckDB reads the pipes. No message ever is a Python object."""

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

import duckdb

from racetrack.errors import RacetrackError, SetupError
from racetrack.probes.broker import TopicOffsets

PAGEVIEWS, FLAGGED = "pageviews", "dd_flagged_profiles"
# Whatever is read, this is far beyond it; a broker that hangs must not hang the harness.
READ_WITHIN_S = 600.0
END_WITHIN_S = 2.0
# It reads ahead of whoever reads it, by default 64 MB.
_FETCH = ("-X", "queued.max.messages.kbytes=16384")
_PAGEVIEW_LINE = '{"partition":%p,"offset":%o,"value":%s}\\n'
_TAKE_PAGEVIEWS = """
INSERT INTO source.pageviews
SELECT "partition", "offset", value.*
FROM read_json($pipes, format = 'newline_delimited', columns = {
    "partition": 'INTEGER',
    "offset": 'BIGINT',
    value: 'STRUCT(user_id BIGINT, url VARCHAR, channel VARCHAR, received_at BIGINT)'
})
"""
_TAKE_FLAGGED = """
INSERT INTO source.dd_flagged_profiles
SELECT payload
FROM read_json($pipes, format = 'newline_delimited', columns = {payload: 'VARCHAR'})
"""


def take_pageviews(db: duckdb.DuckDBPyConnection, bootstrap: str, ends: Sequence[int]) -> None:
    """Fill `source.pageviews` with the topic from its beginning up to these end offsets.

    Raises:
        RacetrackError: it could not be read, is no longer whole, or holds what is no pageview.
    """
    # kcat's own `-J` would give the value as text within JSON, to be parsed twice.
    _take(db, bootstrap, PAGEVIEWS, ends, ["-f", _PAGEVIEW_LINE], _TAKE_PAGEVIEWS)
    bad = db.execute(
        'SELECT "partition", "offset" FROM source.pageviews WHERE user_id IS NULL OR url IS NULL'
        " OR channel IS NULL OR received_at IS NULL LIMIT 1"
    ).fetchone()
    if bad:
        raise RacetrackError(
            f"The message at partition {bad[0]}, offset {bad[1]} of {PAGEVIEWS!r} is no pageview:"
            " it lacks a field."
        )


def take_flagged(db: duckdb.DuckDBPyConnection, bootstrap: str) -> None:
    """Fill `source.dd_flagged_profiles` with all that the topic has now.

    Raises:
        RacetrackError: it could not be read, or is no longer whole.
    """
    ends = TopicOffsets(bootstrap, FLAGGED).end_offsets()
    _take(db, bootstrap, FLAGGED, ends, ["-J"], _TAKE_FLAGGED)


def _take(
    db: duckdb.DuckDBPyConnection,
    bootstrap: str,
    topic: str,
    ends: Sequence[int],
    form: Sequence[str],
    take: str,
) -> None:
    _must_be_whole(bootstrap, topic)
    taken = 0
    for partition, end in enumerate(ends):
        if end == 0:
            continue
        which = ["-t", topic, "-p", str(partition), "-o", "beginning", "-c", str(end)]
        with _kcat(["-b", bootstrap, *which, *form]) as pipe:
            taken = db.execute(take, {"pipes": [f"/dev/fd/{pipe.fileno()}"]}).fetchall()[0][0]
        if taken != end:
            raise RacetrackError(
                f"Partition {partition} of {topic!r} gave {taken:,} messages of {end:,}."
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
