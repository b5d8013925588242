"""Tests that a seed gives the same rows and bytes in every version of the generator, so that runs
can be compared."""

import hashlib
from functools import partial
from typing import Any

from loadgen.clock import NS_PER_S
from loadgen.derived import DerivedEvents
from loadgen.schedule import Schedule
from racetrack.workloads.shop.load import tables
from racetrack.workloads.shop.load.changes import Deletes, Updates
from racetrack.workloads.shop.load.pageviews import Pageviews
from racetrack.workloads.shop.load.purchases import Purchases
from racetrack.workloads.shop.load.topics import flagged_profiles
from racetrack.workloads.shop.load.tracers import Reserved
from racetrack.workloads.shop.tests.load.shop_settings import load
from tests.loadgen.messages import message_ffi, rendered

SHOP = load()
# The users of each partition. Kafka's partitioner, as in librdkafka, distributes them differently.
LAST_USER = Reserved.of(SHOP).last_user
USERS = [[user for user in range(1, LAST_USER + 1) if user % 6 == p] for p in range(6)]
STAMP_MS = 1_763_712_000_123


def digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def schedule() -> Schedule:
    return Schedule.starting(1_700_000_000 * NS_PER_S, 3_000_000, 1000 * NS_PER_S)


def test_rows_that_are_seeded() -> None:
    seeds = (
        tables.seed_users(SHOP.seed, SHOP.users),
        tables.seed_items(SHOP.seed, SHOP.items),
        tables.seed_purchases(SHOP.seed, SHOP.users, SHOP.items),
    )
    assert [digest(list(insert.statements())) for insert in seeds] == [
        "b6194eaf402341c4",
        "1b4d4ad16eccb75a",
        "34b6b460aee3353a",
    ]
    assert digest(tables.TABLES) == "70d8e32324deb427"
    flagged = flagged_profiles(SHOP.seed, SHOP.users, SHOP.flagged_profiles)
    assert digest(flagged) == "516bf23d5876e6b2"


def test_purchases_and_changes() -> None:
    purchases = Purchases(SHOP, schedule())
    assert digest([purchases.make(n, 0) for n in range(1000)]) == "0869d9dea14d7cbd"
    for source, expected in (
        (Updates(SHOP, schedule()), "9b1ea458bf81766e"),
        (Deletes(SHOP, schedule()), "bae4452b45608f97"),
    ):
        made = (source.make(n, 0) for n in range(1000))
        drawn = [(change.decide.__name__, change.which, change.how) for change in made]
        assert digest(drawn) == expected


def test_pageviews_byte_for_byte() -> None:
    pageviews = Pageviews(SHOP, USERS, message_ffi())
    place = partial(pageviews.derived, Purchases.name)
    derived = DerivedEvents(schedule(), place).take(schedule().due_at(1000), 1000)
    renderer = pageviews.renderer(1000)
    found = []
    for partition in range(6):
        renderer.clear()
        renderer.events(renderer.share(partition), 5, 900, STAMP_MS)
        for event in derived[:50]:
            renderer.one(event.content, STAMP_MS + 1)
        found.append(digest(rendered(renderer)))
    assert found == [
        "cbb53cd7369b8f8a",
        "040e6d1c972cfed5",
        "0be84bd21d978f30",
        "9de1f6387289a122",
        "2ab9796c4bd4c1e1",
        "32d32dc44857c8a1",
    ]
