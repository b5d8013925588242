"""Updates and deletions of rows, which make engines retract earlier results.

A change is made in two steps, because it must choose a row that exists. First, random numbers are
drawn, which depend on the seed only. Later, in a transaction, a function chooses the SQL statement
from these numbers and the current rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from loadgen.schedule import Schedule
from loadgen.sequence import Stream, pick
from loadgen.source import Source

from racetrack.workloads.shop.load.sequence import CATEGORIES, MAX_PRICE_CENTS, MIN_PRICE_CENTS
from racetrack.workloads.shop.load.settings import ShopSettings
from racetrack.workloads.shop.load.tables import CLEARANCE, decimal_text, email

# Function that queries one row. Arguments: SQL with placeholders, and their values. It returns a
# row or None.
Ask = Callable[[str, Sequence[object]], Any]
Statement = tuple[str, tuple[object, ...]]
STATUSES = 4
PRICES = MAX_PRICE_CENTS - MIN_PRICE_CENTS + 1
SHELVES = tuple(category for category in CATEGORIES if category != CLEARANCE)


class Bought(NamedTuple):
    """A row of the table `purchases`."""

    id: int
    user_id: int
    status: int


# Function that chooses the SQL statement of a change from two random numbers. It returns None if
# there is no row to change.
Decide = Callable[[Ask, ShopSettings, int, int], "Statement | None"]


class Change(NamedTuple):
    """A change whose statement is not chosen yet: the function that chooses it, and two random
    32-bit numbers as its arguments."""

    decide: Decide
    which: int
    how: int


def new_price(ask: Ask, settings: ShopSettings, which: int, how: int) -> Statement | None:
    """Change the price of an item, and its category: to clearance if the price decreases, otherwise
    to another category. The category changes too because `item_summary` does not contain the
    price."""
    item = 1 + pick(which, settings.items)
    row = ask("SELECT price FROM items WHERE id = %s", (item,))
    if row is None:
        return None
    old_cents = int(row[0] * 100)
    cents = MIN_PRICE_CENTS + (old_cents - MIN_PRICE_CENTS + 1 + pick(how, PRICES - 1)) % PRICES
    category = CLEARANCE if cents < old_cents else SHELVES[how % len(SHELVES)]
    sql = "UPDATE items SET price = %s, category = %s WHERE id = %s"
    return sql, (decimal_text(cents), category, item)


def other_vip_flag(ask: Ask, settings: ShopSettings, which: int, _how: int) -> Statement | None:
    """Flip the VIP flag of a customer, and change the e-mail address accordingly, since views
    contain the address. Choose customers by their purchases, so that high-value users are soon
    among them."""
    bought = _some_purchase(ask, settings, which)
    if bought is None:
        return None
    row = ask("SELECT is_vip, email FROM users WHERE id = %s", (bought.user_id,))
    if row is None:
        return None
    is_vip, old_email = not row[0], row[1]
    sql = "UPDATE users SET is_vip = %s, email = %s WHERE id = %s"
    return sql, (int(is_vip), email(old_email.partition("@")[0], is_vip), bought.user_id)


def next_status(ask: Ask, settings: ShopSettings, which: int, _how: int) -> Statement | None:
    """Advance a purchase to its next status; the first status follows the last."""
    bought = _some_purchase(ask, settings, which)
    if bought is None:
        return None
    sql = "UPDATE purchases SET status = %s WHERE id = %s"
    return sql, (bought.status % STATUSES + 1, bought.id)


def cancellation(ask: Ask, settings: ShopSettings, which: int, _how: int) -> Statement | None:
    """Delete a purchase."""
    bought = _some_purchase(ask, settings, which)
    return bought and ("DELETE FROM purchases WHERE id = %s", (bought.id,))


def _some_purchase(ask: Ask, settings: ShopSettings, which: int) -> Bought | None:
    """Return a random purchase: the first whose id is at least a random number, or else the last.
    None if there are no purchases. Purchases of tracer events are excluded, because changing them
    would falsify the measured view lag."""
    low, high = ask("SELECT MIN(id), MAX(id) FROM purchases", ())
    if low is None:
        return None
    select = "SELECT id, user_id, status FROM purchases WHERE user_id <= %s AND "
    values = (settings.users, low + pick(which, high - low + 1))
    row = ask(f"{select}id >= %s ORDER BY id LIMIT 1", values)
    row = row or ask(f"{select}id < %s ORDER BY id DESC LIMIT 1", values)
    return row and Bought(*row)


class Updates(Source):
    """Source of updates, which alternately change an item, a user and a purchase."""

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
    """Source of cancellations, which delete purchases."""

    name = "delete"
    help_text = "cancelled purchases, whose rows are deleted"
    kinds = (cancellation,)
