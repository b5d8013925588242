"""Tests of the stages of CDC, with inserts whose true lags are known."""

from pathlib import Path

import pytest

from racetrack.analysis import views
from racetrack.results.run import Window

START_MS, EVERY_MS, ROWS = 1_795_000_000_000, 100, 600
BEFORE_THE_RACE = 1_000


def write(
    folder: Path, per_row: int, database_ms: int, topic_ms: int, sent_ms: int | None = None
) -> None:
    """Write inserts, of which one in ten is refused. Each reaches the database `database_ms` after
    it was due, is sent to the topic after `sent_ms` (None: unknown), and arrives there after
    `topic_ms`."""
    lines = ["at_ms,due,refused,done,captured,sent_ms"]
    for row in range(ROWS):
        due = per_row * row
        refused = due // 10
        done, captured = (
            max(0, per_row * (row - late // EVERY_MS)) for late in (database_ms, topic_ms)
        )
        counts = due, refused, done - done // 10, BEFORE_THE_RACE + captured - captured // 10
        at_ms = START_MS + EVERY_MS * row
        sent = 0 if sent_ms is None else at_ms - (topic_ms - sent_ms)
        lines.append(",".join(map(str, (at_ms, *counts, sent))))
    (folder / views.INSERTS_FILE).write_text("\n".join(lines) + "\n")


WINDOW = Window(start_ms=START_MS + 10_000, end_ms=START_MS + 50_000)


@pytest.mark.parametrize("per_row", [10, 100])
def test_each_stage_is_as_old_as_its_oldest_insert_that_is_missing(
    tmp_path: Path, per_row: int
) -> None:
    write(tmp_path, per_row, 300, 1_200, sent_ms=700)
    found = views.cdc_path(tmp_path, WINDOW)
    assert found
    assert found.inserts_per_s == pytest.approx(9 * per_row, rel=0.01)
    for seen, true_ms in ((found.in_database, 300), (found.sent, 700), (found.in_topic, 1_200)):
        assert true_ms <= seen.p50_ms <= seen.p99_ms <= true_ms + EVERY_MS


def test_what_is_there_at_once_has_no_age(tmp_path: Path) -> None:
    assert views.cdc_path(tmp_path, WINDOW) is None
    write(tmp_path, 10, 0, 0)
    found = views.cdc_path(tmp_path, WINDOW)
    assert found and found.in_topic.p99_ms == 0
