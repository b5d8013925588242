"""The shop's database in MySQL: initial rows and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadgen.config import Config
from loadgen.mysql import Database, Seed

from racetrack.workloads.shop.load import tables
from racetrack.workloads.shop.load.changes import Change, Statement
from racetrack.workloads.shop.load.settings import ShopSettings
from racetrack.workloads.shop.load.tracers import Reserved


class Shop(Database):
    """See `loadgen.mysql.Database`."""

    create = tuple(tables.TABLES.values())

    def __init__(self, config: Config, settings: ShopSettings) -> None:
        super().__init__(config)
        self._settings = settings
        # First row (id, user_id, item_id) of a transaction of which it is not known yet whether its
        # commit succeeded; None if there is none. If the commit failed with an error, the next
        # write first checks whether it took effect after all.
        self._unconfirmed: tuple[int, int, int] | None = None
        # Statements that were chosen for the changes of an unfinished transaction; None for a
        # change without a row to change.
        self._statements: list[Statement | None] = []

    def seeds(self) -> Sequence[Seed]:
        seed, users, items = self._settings.seed, self._settings.users, self._settings.items
        customers, products = tables.seed_users(seed, users), tables.seed_items(seed, items)
        reserved = Reserved.of(self._settings)
        more_customers, more_products = tables.tracer_users(reserved), tables.tracer_items(reserved)
        return (
            Seed(customers.and_rows(more_customers), "SHOP_USERS", len(more_customers)),
            Seed(products.and_rows(more_products), "SHOP_ITEMS", len(more_products)),
            Seed(tables.seed_purchases(seed, users, items)),
        )

    def write_purchases(self, buys: Sequence[tuple[int, int, int]]) -> None:
        """Insert purchases, given as (user_id, item_id, quantity), in one transaction.

        After a MySqlError, call again with the same argument. No row is inserted twice."""
        with self.transaction() as cursor:
            if self._unconfirmed is None or not self._was_committed(cursor):
                for sql, values in tables.purchase_rows(buys).statements():
                    cursor.execute(sql, values)
                    self._unconfirmed = self._unconfirmed or (
                        cursor.lastrowid,
                        buys[0][0],
                        buys[0][1],
                    )
        self._unconfirmed = None

    def _was_committed(self, cursor: Any) -> bool:
        """Return whether the last commit took effect although it failed with an error."""
        cursor.execute(
            "SELECT COUNT(*) FROM purchases WHERE id = %s AND user_id = %s AND item_id = %s",
            self._unconfirmed,
        )
        is_there = bool(cursor.fetchone()[0])
        if not is_there:
            self._unconfirmed = None
        return is_there

    def apply(self, changes: Sequence[Change]) -> int:
        """Execute changes in one transaction; return how many of them had no row to change.

        After a MySqlError, call again with the same argument. The same statements are executed
        again, so no change takes effect twice."""
        with self.transaction() as cursor:

            def ask(sql: str, values: Sequence[object]) -> Any:
                cursor.execute(sql, values)
                return cursor.fetchone()

            for number, change in enumerate(changes):
                if number == len(self._statements):
                    self._statements.append(
                        change.decide(ask, self._settings, change.which, change.how)
                    )
                statement = self._statements[number]
                if statement is not None:
                    cursor.execute(*statement)
        unchanged = self._statements.count(None)
        self._statements = []
        return unchanged
