"""Tests of the generator's client, with peers that are no generator, are silent, or disconnect."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from racetrack.clock import attempts
from racetrack.probes.base import CurvesFile
from racetrack.probes.loadgen import ArrivalsProbe, Control, LoadgenError
from racetrack.results.folder import RunFolder


@contextmanager
def peer(*says: bytes, hangs_up: bool = False) -> Iterator[int]:
    """Run a server that sends the first answer as a greeting, and one more for each line that it
    gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as lines:
                for number, answer in enumerate(says):
                    if number and not lines.readline():
                        return
                    connection.sendall(answer)
                if not hangs_up:
                    lines.readline()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(timeout=5)
        assert not thread.is_alive()


GREETING = b"LOADGEN Connected.\n"


def test_somebody_else_on_the_port_or_nobody_is_recognized() -> None:
    with peer(b"SSH-2.0-OpenSSH\n") as port, pytest.raises(LoadgenError, match="SSH"):
        Control("127.0.0.1", port)
    with pytest.raises(LoadgenError, match=str(port)):
        Control("127.0.0.1", port)


def stats(due: int, handed: int, updates_done: int = 5) -> bytes:
    other = {"rate": 0, "due": 5, "done": 5, "refused": 0}
    return (
        json.dumps(
            {
                "events": {"rate": 50, "due": [due], "handed": [handed], "refused": [0]},
                "purchases": other,
                "updates": {**other, "rate": 2, "done": updates_done},
                "deletes": other,
            }
        ).encode()
        + b"\n"
    )


@pytest.mark.slow
def test_counts_are_settled_when_all_that_was_due_is_handed_over_and_flushed() -> None:
    counts = [stats(10, 10), stats(12, 11), stats(13, 12), stats(13, 13)]
    answers = (GREETING, *counts, b"Flushed 13 messages\n", stats(13, 9))
    with peer(*answers) as port, Control("127.0.0.1", port) as control:
        assert control.settled_counts()["handed"] == [9]  # the flush found that 4 were lost


def test_what_was_handed_over_beyond_what_was_due_is_not_waited_for() -> None:
    twice = stats(10, 12), stats(10, 12)
    with (
        peer(GREETING, *twice, b"Flushed 12 messages\n", twice[0]) as port,
        Control("127.0.0.1", port) as control,
    ):
        assert control.settled_counts()["handed"] == [12]


def test_nobody_waits_for_refused_events(tmp_path: Path) -> None:
    counts = json.loads(stats(10, 6)) | {"now_ms": 1}
    counts["events"]["refused"] = [4]
    folder = RunFolder(tmp_path, "flink")
    with peer(GREETING, json.dumps(counts).encode() + b"\n") as port:
        probe = ArrivalsProbe("127.0.0.1", port, folder, CurvesFile(folder))
        probe.start()
        assert any(probe.due == 6 for _ in attempts(5, 0.01))
        probe.stop()
    assert (tmp_path / "arrivals.csv").read_text().split() == ["at_ms,due,handed_over", "1,10,6"]


@pytest.mark.parametrize(
    ("answer", "hangs_up", "command", "says"),
    [
        (b"ERROR: no such key\n", False, "set x 1", "no such key"),
        (b"half a li", True, "stats", "closed"),
        (b"", False, "stats", "does not answer"),
        (stats(10, 7), False, "settle", "3 events behind"),
        (stats(10, 10, updates_done=3), False, "settle", "2 updates behind"),
    ],
)
def test_what_a_generator_should_not_answer_is_reported(
    answer: bytes, hangs_up: bool, command: str, says: str
) -> None:
    with (
        peer(GREETING, answer, hangs_up=hangs_up) as port,
        Control("127.0.0.1", port, answer_within_s=0.1, settled_within_s=0.0) as control,
        pytest.raises(LoadgenError, match=says),
    ):
        control.settled_counts() if command == "settle" else control.ask(command)
