"""Tests of sampling topics of totals by key: every sample has the true totals, though few rows are
read."""

import threading
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, cycle

import numpy as np
import pytest

from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.lag import age
from racetrack.engines.shared.upsert.topics import Span, Written
from racetrack.engines.shared.upsert.totals import EVERY_S, FIRST_STEP, Known, look

pytestmark = pytest.mark.slow

NAME, KEYS = "totals", 6
START_MS, ROWS_PER_MS = 1_000_000, 5


def total_of(row: Written) -> int:
    return int(row.value or 0)


@dataclass
class Topic:
    """A topic of totals by key, in which each row adds one pageview to its key's total. `run` rows
    in turn have the same key: with 1, the keys alternate; with thousands, an engine works off its
    backlog partition by partition."""

    run: int
    rows: int = 60_000
    oldest: int = 0
    end: int = 0
    read: int = 0
    written: list[Written] = field(default_factory=list)

    def __post_init__(self) -> None:
        counts = [0] * KEYS
        for offset, number in zip(range(self.rows), self._keys(), strict=False):
            counts[number] += 1
            at_ms = START_MS + offset // ROWS_PER_MS
            key, value = b"%d" % number, b"%d" % counts[number]
            self.written.append(Written(NAME, offset, at_ms, key, value))

    def _keys(self) -> list[int]:
        turns = cycle(range(KEYS))
        return [key for _ in range(-(-self.rows // self.run)) for key in [next(turns)] * self.run]

    def offsets(
        self, names: Collection[str], stop: threading.Event | None = None
    ) -> dict[str, Span]:
        return dict.fromkeys(names, (self.oldest, self.end))

    def rows_between(self, spans: Mapping[str, Span]) -> dict[str, list[Written]]:
        return {name: self._between(*span) for name, span in spans.items()}

    def newest(self, name: str, span: Span, but: Container[bytes]) -> list[Written]:
        assert name == NAME
        newest = {row.key: row for row in self._between(*span)}
        return [row for key, row in newest.items() if key not in but]

    def _between(self, begin: int, end: int) -> list[Written]:
        self.read += end - begin
        return self.written[begin:end]

    def taken_up_to(self, end: int, known: Known) -> list[Written]:
        """Let the topic end at `end`, and return the rows that a sample then reads."""
        self.end = end
        return list(look(self, {NAME: known}, total_of))

    def totals_at(self, end: int) -> dict[bytes, int]:
        return {row.key: total_of(row) for row in self.written[:end]}


def samples(topic: Topic, every: int) -> list[Written]:
    """Return the rows that samples read, one sample per `every` rows. After each, check all
    totals."""
    known, taken = Known(KEYS), []
    for end in accumulate([every] * (topic.rows // every)):
        taken += topic.taken_up_to(end, known)
        assert known.totals == topic.totals_at(end)
    return taken


# Number of rows between two samples.
EVERY = int(EVERY_S * 1_000 * ROWS_PER_MS)


@pytest.mark.parametrize(
    ("run", "share"),
    [(1, 0.11), (7, 1), (15, 0.11), (30, 1), (500, 1), (1_000, 1), (9_500, 0.3)],
)
def test_each_sample_holds_the_true_totals_though_few_rows_are_read(run: int, share: float) -> None:
    topic = Topic(run)
    samples(topic, EVERY)
    assert topic.read <= share * topic.rows


@pytest.mark.parametrize("stands_still", [b"", b"0"])
def test_rows_that_do_not_add_one_each_are_read_until_all_keys_are_found(
    stands_still: bytes,
) -> None:
    """Reading can stop early only if each row adds one to a total. A view that sums totals, for
    example, first subtracts the old total and then adds the new one. If a key stands still, all
    rows are read."""
    topic = Topic(run=50, rows=EVERY)
    kept = [row for row in topic.written if row.key != stands_still]
    topic.written = [
        Written(row.topic, offset, row.at_ms, row.key, b"%d" % (2 * total_of(row)))
        for offset, row in enumerate(kept)
    ]
    if stands_still:
        topic.taken_up_to(len(kept), Known(KEYS))
        assert topic.read == len(kept)
    else:
        samples(topic, EVERY)
        assert FIRST_STEP < topic.read < topic.rows


@pytest.mark.parametrize(("run", "as_fast"), [(1, 1), (30, 1), (9_500, KEYS)])
def test_an_age_from_samples_is_never_too_low_and_at_most_so_much_too_high(
    run: int, as_fast: int
) -> None:
    """An age from samples may be too high, by the span of due times that the engine counts between
    two samples. That is one sampling interval if all partitions are counted in turn, and more if an
    engine counts one partition at a time, faster than its pageviews come."""
    topic = Topic(run)
    full, sampled = (curves(topic, rows) for rows in (topic.written, samples(topic, EVERY)))
    window = (START_MS + 6_000, START_MS + 11_000)
    shares = (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)
    true = age(full, *window).quantiles_ms(shares)
    seen = age(sampled, *window).quantiles_ms(shares)
    for at_most_ms, seen_ms in zip(true, seen, strict=True):
        assert at_most_ms - 1 <= seen_ms <= at_most_ms + 1_000 * EVERY_S * as_fast + 10


def curves(topic: Topic, rows: list[Written]) -> Curves:
    """Return curves as the harness records them, with these rows as the engine's counts. Pageviews
    become due at a steady rate, and are counted 3 s late."""
    due_ms = np.arange(-3_000.0, 12_000.0, 100.0)
    due = Curve(START_MS + due_ms - 1, np.round((due_ms + 3_000) * ROWS_PER_MS / KEYS))
    per_key = [[row for row in rows if row.key == b"%d" % key] for key in range(KEYS)]
    processed = tuple(
        Curve(
            np.array([row.at_ms for row in mine], dtype=np.float64),
            np.array([total_of(row) for row in mine], dtype=np.float64),
        )
        for mine in per_key
    )
    same = (due,) * KEYS
    return Curves(tuple(range(KEYS)), same, same, same, processed)
