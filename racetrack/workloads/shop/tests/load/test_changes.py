"""Tests that updates and deletions leave tracer events alone."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from racetrack.workloads.shop.load import changes
from racetrack.workloads.shop.tests.load.shop_settings import load

SETTINGS = load(SHOP_ITEMS="20", SHOP_USERS="200")
WORDS_32 = st.integers(0, 2**32 - 1)


class Database:
    """A fake database for the queries of updates and deletions; some purchase ids are missing."""

    def __init__(self, ids: Sequence[int] = (3, 4, 9)) -> None:
        self.purchases = {n: (n, 100 + n, 4) for n in ids}

    def ask(self, sql: str, values: Sequence[Any]) -> Any:
        if "MIN(id)" in sql:
            return (min(self.purchases, default=None), max(self.purchases, default=None))
        if "FROM purchases" in sql:
            users, wanted = values
            mine = [row for row in self.purchases.values() if row[1] <= users]
            if "DESC" in sql:
                return max((row for row in mine if row[0] < wanted), default=None)
            return min((row for row in mine if row[0] >= wanted), default=None)
        raise NotImplementedError(sql)


@given(WORDS_32)
def test_a_tracer_event_is_never_changed(which: int) -> None:
    database = Database()
    for mark in (1, 7, 12):
        database.purchases[mark] = (mark, SETTINGS.users + 1, 1)
    for decide in (changes.cancellation, changes.next_status):
        assert (decide(database.ask, SETTINGS, which, 0) or ("", ()))[1][-1] in (3, 4, 9)
