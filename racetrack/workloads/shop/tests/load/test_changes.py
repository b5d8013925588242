"""Tests that a seed and the present rows determine updates and deletions."""

from collections.abc import Sequence
from decimal import Decimal
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
        self.price = Decimal("10.00")
        self.user = (1, "calm.lamp.7@vip.example.com")

    def ask(self, sql: str, values: Sequence[Any]) -> Any:
        if "MIN(id)" in sql:
            return (min(self.purchases, default=None), max(self.purchases, default=None))
        if "FROM purchases" in sql:
            users, wanted = values
            mine = [row for row in self.purchases.values() if row[1] <= users]
            if "DESC" in sql:
                return max((row for row in mine if row[0] < wanted), default=None)
            return min((row for row in mine if row[0] >= wanted), default=None)
        if "FROM items" in sql:
            return (self.price,)
        return self.user


@given(WORDS_32, WORDS_32, st.integers(500, 50_000))
def test_a_new_price_is_another_one_in_range_and_a_cut_goes_to_clearance(
    which: int, how: int, old_cents: int
) -> None:
    database = Database()
    database.price = Decimal(old_cents) / 100
    statement = changes.new_price(database.ask, SETTINGS, which, how)
    assert statement
    price, category, item = statement[1]
    assert Decimal(5) <= Decimal(str(price)) <= Decimal(500)
    assert Decimal(str(price)) != database.price
    assert (category == "clearance") is (Decimal(str(price)) < database.price)
    assert item in range(1, 21)


@given(WORDS_32)
def test_a_tracer_event_is_never_changed(which: int) -> None:
    database = Database()
    for mark in (1, 7, 12):
        database.purchases[mark] = (mark, SETTINGS.users + 1, 1)
    for decide in (changes.cancellation, changes.next_status):
        assert (decide(database.ask, SETTINGS, which, 0) or ("", ()))[1][-1] in (3, 4, 9)
