"""Table definitions and initial rows of the database `shop`, which depend on the seed only.

Column types are as in the original demo. Debezium converts BIGINT UNSIGNED to long, BOOLEAN to int,
TIMESTAMP to an ISO 8601 string, and DATETIME to epoch milliseconds. It converts DECIMAL without
loss."""

from __future__ import annotations

from collections.abc import Sequence

from loadgen.mysql import Insert
from loadgen.popularity import zipf
from loadgen.sequence import Stream, pick

from racetrack.workloads.shop.load.sequence import (
    CATEGORIES,
    MAX_INVENTORY,
    MAX_PRICE_CENTS,
    MIN_INVENTORY,
    MIN_PRICE_CENTS,
    purchase,
)
from racetrack.workloads.shop.load.tracers import Reserved

# Number of initial purchases, and of the customers who make them. With so few customers, some spend
# more than 10,000 from the start. Otherwise, at three purchases per second by 10,000 users, the
# view of high-value users would be empty for an hour.
PAST_PURCHASES = 1_000
REGULAR_CUSTOMERS = 50
CLEARANCE = "clearance"

_TIMES = """created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"""
TABLES = {
    "users": f"""CREATE TABLE IF NOT EXISTS users (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    email VARCHAR(255),
    is_vip BOOLEAN DEFAULT FALSE,
    {_TIMES})""",
    "items": f"""CREATE TABLE IF NOT EXISTS items (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(100),
    category VARCHAR(100),
    price DECIMAL(7,2),
    inventory INT,
    inventory_updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    {_TIMES})""",
    "purchases": f"""CREATE TABLE IF NOT EXISTS purchases (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT UNSIGNED,
    item_id BIGINT UNSIGNED,
    status TINYINT UNSIGNED DEFAULT 1,
    quantity INT UNSIGNED DEFAULT 1,
    purchase_price DECIMAL(12,2),
    deleted BOOLEAN DEFAULT FALSE,
    {_TIMES})""",
}
_ADJECTIVES = (
    "brisk",
    "calm",
    "amber",
    "quiet",
    "sturdy",
    "gentle",
    "vivid",
    "mellow",
    "nimble",
    "rustic",
    "silver",
    "plain",
)
_NOUNS = (
    "lamp",
    "kettle",
    "anvil",
    "compass",
    "lantern",
    "basket",
    "saddle",
    "ladle",
    "mirror",
    "bellows",
    "spindle",
    "trowel",
)


def _choose(words: Sequence[str], random32: int) -> str:
    return words[pick(random32, len(words))]


def decimal_text(cents: int) -> str:
    """Format cents as exact decimal text: 12345 -> "123.45"."""
    return f"{cents // 100}.{cents % 100:02d}"


def email(name: str, is_vip: object) -> str:
    """Return a user's e-mail address; VIPs have their own domain."""
    return f"{name}@{'vip.' if is_vip else ''}example.com"


def prices_cents(seed: int, items: int) -> list[int]:
    """Return the initial price of every item, by item id (index 0 is unused)."""
    stream = Stream(seed, "prices")
    return [
        MIN_PRICE_CENTS + pick(stream.draw(i)[0], MAX_PRICE_CENTS - MIN_PRICE_CENTS + 1)
        for i in range(items + 1)
    ]


def seed_users(seed: int, users: int) -> Insert:
    """Return the rows of the customers, with the ids 1 to `users`. About one in six is a VIP."""
    stream = Stream(seed, "users")
    rows = []
    for user in range(1, users + 1):
        first, second = stream.draw(user)
        name = f"{_choose(_ADJECTIVES, first)}.{_choose(_NOUNS, second)}.{user}"
        is_vip = int(stream.draw(users + user)[0] % 6 == 0)
        rows.append((user, email(name, is_vip), is_vip))
    return Insert("users", ("id", "email", "is_vip"), rows)


def seed_items(seed: int, items: int) -> Insert:
    """Return the rows of the products, with the ids 1 to `items`."""
    stream, prices = Stream(seed, "items"), prices_cents(seed, items)
    rows = []
    for item in range(1, items + 1):
        first, second = stream.draw(item)
        third, fourth = stream.draw(items + item)
        name = f"{_choose(_ADJECTIVES, first)} {_choose(_NOUNS, second)} {item}"
        inventory = MIN_INVENTORY + pick(fourth, MAX_INVENTORY - MIN_INVENTORY + 1)
        rows.append(
            (
                item,
                name,
                _choose(CATEGORIES, third),
                decimal_text(prices[item]),
                inventory,
            )
        )
    return Insert("items", ("id", "name", "category", "price", "inventory"), rows)


def tracer_users(reserved: Reserved) -> list[tuple[object, ...]]:
    """Return rows for the users reserved for tracer events, with the columns of `seed_users`."""
    ids = range(reserved.users + 1, reserved.last_user + 1)
    return [(user, email(f"tracer.{user}", is_vip=False), 0) for user in ids]


def tracer_items(reserved: Reserved) -> list[tuple[object, ...]]:
    """Return rows for the products reserved for tracer events, with the columns of `seed_items`."""
    ids = range(reserved.items + 1, reserved.last_item + 1)
    price = decimal_text(MIN_PRICE_CENTS)
    return [(item, f"tracer {item}", CATEGORIES[0], price, MAX_INVENTORY) for item in ids]


def purchase_rows(buys: Sequence[tuple[int, int, int]]) -> Insert:
    """Return the rows of purchases given as (user_id, item_id, quantity). Each gets the price that
    the item has when the row is inserted; a later change of the price does not affect the purchase.
    """
    rows = [(user, item, quantity, item, quantity) for user, item, quantity in buys]
    price = "(SELECT price FROM items WHERE id = %s)"
    columns = ("user_id", "item_id", "quantity", "purchase_price")
    return Insert("purchases", columns, rows, f"(%s, %s, %s, {price} * %s)")


def seed_purchases(seed: int, users: int, items: int) -> Insert:
    """Return the initial purchases: PAST_PURCHASES by the first REGULAR_CUSTOMERS users,
    evenly distributed."""
    stream = Stream(seed, "past purchases")
    products, regulars = zipf(items), zipf(min(users, REGULAR_CUSTOMERS))
    past = (purchase(stream, n, products, regulars) for n in range(PAST_PURCHASES))
    return purchase_rows([(p.user_id, p.item_id, p.quantity) for p in past])
