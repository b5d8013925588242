"""Tests of following a file: whole lines, in order, none lost at the end."""

import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from racetrack.engines.shared.progress_log import follow

PIECES = st.lists(st.text(alphabet="ab\n", max_size=5), max_size=30)


@given(pieces=PIECES)
def test_lines_come_whole_however_they_were_written(
    tmp_path_factory: object, pieces: list[str]
) -> None:
    path = tmp_path_factory.mktemp("follow") / "log"  # type: ignore[attr-defined]
    path.write_text("")
    stop = threading.Event()

    def write() -> None:
        with path.open("a", buffering=1) as file:
            for piece in pieces:
                file.write(piece)
                file.flush()
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = list(follow(path, stop))
    writer.join()
    assert seen == "".join(pieces).split("\n")[:-1]


def test_what_was_there_before_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nunfinished")
    stop = threading.Event()
    stop.set()
    assert list(follow(path, stop)) == ["one", "two"]
