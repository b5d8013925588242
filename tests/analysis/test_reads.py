"""Tests of the duration and age of answers, with files of reads whose truth is known."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from racetrack.analysis import views
from racetrack.results.figures import Answers
from racetrack.results.json_file import write_json
from racetrack.results.run import TracedViewRecord, Window
from tests.analysis.view_files import EVERY_MS, PARTITIONS, START_MS, write, write_reads
from tests.records import run_json

WHOLE, SOME, OTHERS = "best", "sold by item_id", "seen by owner_id"
PRODUCTS = TracedViewRecord(name="sold.views", source="pageviews", parity=0, is_time=False)
PROFILES = TracedViewRecord(name="seen.at", source="pageviews", parity=1, is_time=True)
ASKED = {WHOLE: None, SOME: PRODUCTS, OTHERS: PROFILES}
PER_S = 2
WINDOW = Window(start_ms=START_MS + 20_000, end_ms=START_MS + 80_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files of a run whose views are 1.25 s late and whose answers take 300 ms; return
    its folder."""
    write(tmp_path, [PRODUCTS, PROFILES], 1_250)
    write_reads(tmp_path, ASKED, 1_250, 300, PER_S)
    run = {
        "settings": {"reads_per_second": PER_S},
        "traced_views": [view.model_dump() for view in (PRODUCTS, PROFILES)],
        "queries": [
            {"name": name, "traced_view": view.name if view else None}
            for name, view in ASKED.items()
        ],
    }
    write_json(tmp_path / "run.json", run_json(run))
    return tmp_path


def answers(folder: Path) -> dict[str, Answers]:
    return {one.query: one for one in views.read_answers(folder, PARTITIONS, WINDOW)}


def rewrite(folder: Path, change: Callable[[list[str]], Iterable[str]]) -> None:
    """Change the rows of the file of reads."""
    file = folder / "reads.csv"
    header, *rows = file.read_text().splitlines()
    file.write_text("\n".join([header, *change(rows)]) + "\n")


def due_in_window(folder: Path, query: str) -> int:
    """Return the number of a query's reads that were due in the window, from the file's rows."""
    rows = [line.split(",") for line in (folder / "reads.csv").read_text().splitlines()[1:]]
    times_ms = [int(row[0]) for row in rows if row[3] == query]
    return sum(WINDOW.start_ms <= due_ms < WINDOW.end_ms for due_ms in times_ms)


def test_each_query_has_its_response_times(folder: Path) -> None:
    found = answers(folder)
    assert list(found) == list(ASKED)
    for query, one in found.items():
        assert one.due == one.answered == due_in_window(folder, query) > 30
        assert (one.errors, one.rows_max) == (0, 20)
        assert one.time
        assert one.time.p50_ms == one.time.p99_ms == 300
        assert one.service_time == one.time


@pytest.mark.parametrize("query", [SOME, OTHERS])
def test_an_answer_is_as_old_as_its_view_when_it_was_asked_and_as_it_took(
    folder: Path, query: str
) -> None:
    """Tracer events show an answer's age only to within their interval. The lower age is reported,
    which is never more than the true one."""
    assert answers(folder)[WHOLE].age is None  # its view is not traced
    age = answers(folder)[query].age
    assert age
    for ms in (age.p50_ms, age.p99_ms):
        assert 1_550 - 2 * EVERY_MS <= ms <= 1_552


def test_reads_that_were_due_and_never_answered_take_without_end(folder: Path) -> None:
    """At the end of a run, the client may still be waiting for answers. Such a read counts as
    infinitely long."""
    due = due_in_window(folder, SOME)
    rewrite(folder, lambda rows: rows[:100])
    found = answers(folder)[SOME]
    assert (found.due, found.answered) == (due, due_in_window(folder, SOME))
    assert due / 2 < found.answered < 0.9 * due
    assert found.time
    assert (found.time.p50_ms, found.time.p99_ms) == (300, float("inf"))


def test_errors_are_counted_apart_from_answers(folder: Path) -> None:
    answer, error = f"{WHOLE},20,,", f"{WHOLE},,,it is gone"
    rewrite(folder, lambda rows: (row.replace(answer, error) for row in rows))
    found = answers(folder)
    whole = found[WHOLE]
    assert (whole.answered, whole.errors) == (0, due_in_window(folder, WHOLE))
    assert (whole.first_error, whole.rows_max) == ("it is gone", None)
    assert found[SOME].errors == 0


def test_a_question_that_the_engine_can_not_answer_is_left_out(folder: Path) -> None:
    rewrite(folder, lambda rows: (row for row in rows if SOME not in row))
    assert list(answers(folder)) == [WHOLE, OTHERS]


def test_a_read_that_waits_for_the_one_before_takes_longer_than_its_answer(folder: Path) -> None:
    rewrite(folder, lambda rows: (f"{int(row[:13]) - 200}{row[13:]}" for row in rows))
    for one in answers(folder).values():
        assert one.time and one.service_time
        assert (one.time.p50_ms, one.service_time.p50_ms) == (500, 300)


def test_without_any_answer_every_query_has_none(folder: Path) -> None:
    (folder / "reads.csv").unlink()
    found = answers(folder)
    assert list(found) == list(ASKED)
    assert all((one.due, one.answered, one.time) == (0, 0, None) for one in found.values())
