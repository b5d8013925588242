"""Tests of the shop's initial rows, and of the statements that insert rows."""

from decimal import Decimal

from racetrack.workloads.shop.load import tables as shop

SEED, USERS, ITEMS = 42, 2_500, 120


def test_prices_are_exact_and_a_vip_has_the_address_of_one() -> None:
    prices = [Decimal(str(row[3])) for row in shop.seed_items(SEED, ITEMS).rows]
    assert all(Decimal(5) <= price <= Decimal(500) for price in prices)
    assert all(price == price.quantize(Decimal("0.01")) for price in prices)
    for _, email, is_vip in shop.seed_users(SEED, USERS).rows:
        assert (email.endswith("@vip.example.com")) is bool(is_vip)  # type: ignore[attr-defined]


def test_a_purchase_costs_quantity_times_the_price_of_that_moment() -> None:
    [(sql, values)] = shop.purchase_rows([(7, 3, 4)]).statements()
    price = "(SELECT price FROM items WHERE id = %s)"
    assert sql.endswith(f"VALUES (%s, %s, %s, {price} * %s)")
    assert values == [7, 3, 4, 3, 4]


def test_some_past_customer_is_of_high_value_and_the_item_exists() -> None:
    prices = shop.prices_cents(SEED, ITEMS)
    spent_cents: dict[object, int] = {}
    for user, item, quantity, _, _ in shop.seed_purchases(SEED, USERS, ITEMS).rows:
        assert isinstance(item, int)
        assert isinstance(quantity, int)
        assert 1 <= item <= ITEMS
        spent_cents[user] = spent_cents.get(user, 0) + prices[item] * quantity
    assert max(spent_cents.values()) > 10_000 * 100


def test_a_shop_of_one_user_and_one_item_works() -> None:
    assert len(shop.seed_users(SEED, 1).rows) == 1
    assert {row[1] for row in shop.seed_purchases(SEED, 1, 1).rows} == {1}
