"""Updates and deletions of what is in the shop, so that an engine has to take back what it counted.

Which row a change meets depends on what is there, so a change is decided in two steps: its random
numbers are a function of the seed; the statement is made of them and of the rows as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from loadgen.schedule import Schedule
from loadgen.sequence import Stream, pick
from loadgen.source import Source

from racetrack.workloads.shop.load.sequence import CATEGORIES, MAX_PRICE_CENTS, MIN_PRICE_CENTS
from racetrack.workloads.shop.load.settings import ShopSettings
from racetrack.workloads.shop.load.tables import CLEARANCE, decimal_text, email

# Asks for one row: SQL with placeholders and their values -> the row, or None.
Ask = Callable[[str, Sequence[object]], Any]
Statement = tuple[str, tuple[object, ...]]
STATUSES = 4
PRICES = MAX_PRICE_CENTS - MIN_PRICE_CENTS + 1
SHELVES = tuple(category for category in CATEGORIES if category != CLEARANCE)


class Bought(NamedTuple):
    """A row of purchases."""

    id: int
    user_id: int
    status: int


# How a change becomes a statement, with its two random numbers; None: there is no row to change.
Decide = Callable[[Ask, ShopSettings, int, int], "Statement | None"]


class Change(NamedTuple):
    """A change to come: what to decide it by, and two random 32-bit numbers."""

    decide: Decide
    which: int
    how: int


def new_price(ask: Ask, settings: ShopSettings, which: int, how: int) -> Statement | None:
    """Another price for an item. One that has become cheaper goes to clearance, another one to one
    of the other categories: item_summary shows no price, but the category.
    """
    item = 1 + pick(which, settings.items)
    found = ask("SELECT price FROM shop.items WHERE id = %s", (item,))
    if found is None:
        return None
    old_cents = int(found[0] * 100)
    cents = MIN_PRICE_CENTS + (old_cents - MIN_PRICE_CENTS + 1 + pick(how, PRICES - 1)) % PRICES
    category = CLEARANCE if cents < old_cents else SHELVES[how % len(SHELVES)]
    sql = "UPDATE shop.items SET price = %s, category = %s WHERE id = %s"
    return sql, (decimal_text(cents), category, item)


def other_vip_flag(ask: Ask, settings: ShopSettings, which: int, _how: int) -> Statement | None:
    """A customer becomes a VIP or ceases to be one, and his address with it: that is what views
    show. The customer of a purchase, so that those of high value are met soon.
    """
    bought = _some_purchase(ask, settings, which)
    if bought is None:
        return None
    found = ask("SELECT is_vip, email FROM shop.users WHERE id = %s", (bought.user_id,))
    if found is None:
        return None
    is_vip, old_email = not found[0], found[1]
    sql = "UPDATE shop.users SET is_vip = %s, email = %s WHERE id = %s"
    return sql, (int(is_vip), email(old_email.partition("@")[0], is_vip), bought.user_id)


def next_status(ask: Ask, settings: ShopSettings, which: int, _how: int) -> Statement | None:
    """A purchase goes on to its next status, of STATUSES that follow each other round."""
    bought = _some_purchase(ask, settings, which)
    if bought is None:
        return None
    sql = "UPDATE shop.purchases SET status = %s WHERE id = %s"
    return sql, (bought.status % STATUSES + 1, bought.id)


def cancellation(ask: Ask, settings: ShopSettings, which: int, _how: int) -> Statement | None:
    """A purchase is gone."""
    bought = _some_purchase(ask, settings, which)
    return bought and ("DELETE FROM shop.purchases WHERE id = %s", (bought.id,))


def _some_purchase(ask: Ask, settings: ShopSettings, which: int) -> Bought | None:
    """The first purchase whose id is not below a random one, or the last there is; None where there
    is none. Those that are marks stay as they are: they are counted.
    """
    low, high = ask("SELECT MIN(id), MAX(id) FROM shop.purchases", ())
    if low is None:
        return None
    select = "SELECT id, user_id, status FROM shop.purchases WHERE user_id <= %s AND "
    values = (settings.users, low + pick(which, high - low + 1))
    found = ask(f"{select}id >= %s ORDER BY id LIMIT 1", values)
    found = found or ask(f"{select}id < %s ORDER BY id DESC LIMIT 1", values)
    return found and Bought(*found)


class Updates(Source):
    """Changed rows: of items, users and purchases in turn."""

    name = "update"
    help_text = "updates: item prices, VIP flags, purchases' status"
    optional = True
    kinds: tuple[Decide, ...] = (new_price, other_vip_flag, next_status)

    def __init__(
        self, settings: ShopSettings, schedule: Schedule, start_milli_per_s: int = 0
    ) -> None:
        super().__init__(schedule, start_milli_per_s)
        self._stream = Stream(settings.seed, f"{self.name}s")

    def make(self, n: int, _due_ns: int) -> Change:
        return Change(self.kinds[n % len(self.kinds)], *self._stream.draw(n))

    def write(self, database: Any, work: Sequence[Change]) -> int:
        return int(database.apply(work))


class Deletes(Updates):
    """Cancelled purchases: their rows go."""

    name = "delete"
    help_text = "cancelled purchases, whose rows are deleted"
    kinds = (cancellation,)
