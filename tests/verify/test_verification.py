"""Tests of the whole verification with a fake engine and fake sources: waiting, late views, and the
records of views."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest

from racetrack.analysis.outcome import wrong_views
from racetrack.clock import now_ms
from racetrack.config import load
from racetrack.engines.contract import Engine, NoSuchView
from racetrack.errors import RacetrackError
from racetrack.probes.loadgen import Settled
from racetrack.results.verification import Verified
from racetrack.stack.contract import Stack
from racetrack.verify import sources, verification
from racetrack.verify.compare import compare
from racetrack.verify.tables import CdcTopics
from racetrack.verify.verification import Verification
from racetrack.workloads.contract import View
from racetrack.workloads.shop.catalogue import VIEWS
from racetrack.workloads.shop.harness import WORKLOAD
from racetrack.workloads.shop.tests import conftest, shop
from racetrack.workloads.shop.tests.shop import Shop

pytestmark = pytest.mark.slow

ReadView = Callable[[str], pa.Table]
Views = Mapping[str, pa.Table] | ReadView
EDGE_MS = 20_000


@pytest.fixture
def truth() -> Shop:
    """Return a shop with pageviews inside and outside of the views' window of time."""
    made = shop.make()
    made.now_ms = now_ms()
    # Pageviews are recent, so that some are in the window, but none within 20 s of the window's
    # edge, which moves while a test runs.
    for row in made.pageviews:
        age_ms = shop.START_MS + 900_600 - row["received_at"]
        if abs(age_ms - shop.WINDOW_MS) < EDGE_MS:
            age_ms = shop.WINDOW_MS + (EDGE_MS if age_ms > shop.WINDOW_MS else -EDGE_MS)
        row["received_at"] = made.now_ms - age_ms

    return made


def rows_of(made: Shop) -> dict[str, Any]:
    """Return the rows of the shop's tables as MySQL returns them."""
    return {view.name: conftest.rows_of(made, view) for view in WORKLOAD.table_views()}


UNFIT = sources.Unfit(2, ["partition 0, offset 7: no value (a tombstone)"])


class Delivered:
    """Fake topics of CDC. `read_on` moves to the next of these shops, and stays at the last one."""

    def __init__(self, *shops: Shop) -> None:
        self._shops = list(shops)
        self.unfit: dict[str, list[str]] = {}

    def read_on(self) -> int:
        """Move to the next shop; return 0 if there is none."""
        if len(self._shops) == 1:
            return 0
        self._shops.pop(0)
        return 1

    def table(self, view: View) -> pa.Table:
        """Return a table as its topic has it."""
        rows = getattr(self._shops[0], view.name)
        return pa.Table.from_pylist([{name: row[name] for name in view.columns} for row in rows])

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Bench:
    """A shop and the folder of a verification of engines that read it."""

    truth: Shop
    folder: Path

    def of(
        self,
        views: Views,
        patience_s: float = 60.0,
        delivered: Delivered | None = None,
        in_mysql: dict[str, Any] | None = None,
        unfit: sources.Unfit | None = None,
        ignores: tuple[str, ...] = (),
        updates_per_s: int = 0,
        name: str = "verify",
    ) -> Verification:
        """Return a verification. `patience_s` is the time for a view to become right. `delivered`
        are the topics of CDC; without them the engine uses no CDC. `in_mysql` replaces the tables'
        rows. `unfit` are pageviews that were left out. The engine `ignores` updates of these
        tables."""

        def take(
            db: duckdb.DuckDBPyConnection, where: object, topic: object, ends: object
        ) -> sources.Unfit:
            conftest.load_topics(db, self.truth)
            return unfit or sources.Unfit()

        progress = shop.views(self.truth)["pageviews_progress"].to_pylist()
        ends = [row["total"] for row in sorted(progress, key=lambda row: row["partition"])]
        read_view = views.__getitem__ if isinstance(views, Mapping) else views
        engine = SimpleNamespace(
            needs=("debezium",) if delivered else (),
            ignores_updates_of=ignores,
            read_view=lambda _, view: read_view(view),
            clock_slack_ms=lambda _: 0,
        )
        stack = SimpleNamespace(
            settings=load({"UPDATES_PER_SECOND": str(updates_per_s)}),
            endpoints=SimpleNamespace(kafka="nowhere:0"),
        )
        return Verification(
            cast(Engine, engine),
            cast(Stack, stack),
            Settled(time.monotonic(), ends, [0] * len(ends), ends),
            self.folder / name,
            lambda _: None,
            verification.Inputs(
                read_tables=lambda *_: in_mysql or rows_of(self.truth),
                open_cdc=lambda *_: cast(CdcTopics, delivered),
                statements_without_messages=lambda *_: ["TRUNCATE TABLE x (log)"],
                take_topic=take,
                take_whole_topic=lambda *_: sources.Unfit(),
            ),
            verification.Limits(patience_s, patience_s, min(patience_s, 0.5), look_every_s=0.01),
        )

    def verify(self, views: Views, patience_s: float = 60.0, **more: Any) -> dict[str, Any]:
        """Verify one engine; return the record. See `of` for the arguments."""
        made = self.of(views, patience_s, **more).run()
        return made.model_dump(mode="json", exclude_unset=True)


@pytest.fixture
def bench(truth: Shop, tmp_path: Path) -> Bench:
    return Bench(truth, tmp_path)


def late(truth: Shop, reads: int) -> ReadView:
    """Return a function that reads views in which the last events are missing at the first
    `reads` times."""
    rows, early, reads_of = shop.views(truth), shop.views(earlier(truth)), Counter[str]()

    def read_view(view: str) -> pa.Table:
        reads_of[view] += 1
        return (rows if reads_of[view] > reads else early)[view]

    return read_view


def statuses(found: dict[str, Any]) -> dict[str, str]:
    return {name: view["status"] for name, view in found["views"].items()}


def not_right(found: dict[str, Any]) -> dict[str, str]:
    return {name: status for name, status in statuses(found).items() if status != "right"}


def test_a_faultless_engine(bench: Bench) -> None:
    found = bench.verify(shop.views(bench.truth))
    assert statuses(found) == {view.name: "right" for view in VIEWS}
    assert found["drained_after_s"] is not None
    assert found["source_rows"]["pageviews"] == len(bench.truth.pageviews)
    assert not (bench.folder / "verify").exists()


def test_views_that_are_late_are_waited_for(bench: Bench) -> None:
    assert not not_right(bench.verify(late(bench.truth, reads=3)))
    assert not list((bench.folder / "verify").glob("*"))


def test_engines_on_one_input_are_verified_together_and_drain_alone(bench: Bench) -> None:
    rows, early, looks = shop.views(bench.truth), shop.views(earlier(bench.truth)), count()

    def read_slowly(view: str) -> pa.Table:
        is_behind = view == "pageviews_progress" and next(looks) < 20
        return (early if is_behind else rows)[view]

    engines = {"slow": bench.of(read_slowly, name="slow"), "fast": bench.of(rows, name="fast")}
    found = verification.verify_together(engines, lambda: None)
    assert list(found) == ["slow", "fast"]
    slow_s, fast_s = (of.drained_after_s for of in found.values())
    assert slow_s and fast_s and slow_s > fast_s


def test_a_failed_check_ends_the_verification_of_all(bench: Bench) -> None:
    early = shop.views(earlier(bench.truth))

    def check() -> None:
        raise RacetrackError("broker has ended")

    waiting = {name: bench.of(early, name=name) for name in ("a", "b")}
    with pytest.raises(RacetrackError, match="broker has ended"):
        verification.verify_together(waiting, check)


def test_an_engine_that_never_drains_is_compared_as_it_is(bench: Bench) -> None:
    found = bench.verify(shop.views(earlier(bench.truth)), patience_s=0.5)
    assert found["drained_after_s"] is None
    assert statuses(found)["purchases"] == statuses(found)["pageviews_progress"] == "wrong"
    assert statuses(found)["users"] == "right"
    view = found["views"]["purchases"]
    assert (view["compared"], view["missing"]) == (200, 1)
    assert view["first"][0]["source"]["id"] == 200
    lines = (bench.folder / "verify" / "purchases.csv").read_text().splitlines()
    assert lines[0].startswith("finding,source id,engine id,source user_id,engine user_id,")
    assert lines[1].startswith("missing,200,,")


def counting(truth: Shop, more: int) -> dict[str, pa.Table]:
    """Return the views of an engine that counted `more` pageviews too many in partition 1."""
    content = shop.views(truth)
    for view in ("pageviews_progress", "pageviews_summary"):
        rows = content[view].to_pylist()
        for row in rows:
            row["total"] += more if row.get("partition", 1) == 1 else 0
        content[view] = pa.Table.from_pylist(rows)
    return content


@pytest.mark.parametrize(("more", "twice", "lost"), [(90, 90, 0), (-7, 0, 7)])
def test_what_was_counted_twice_or_lost_is_reported_in_events(
    bench: Bench, more: int, twice: int, lost: int
) -> None:
    found = bench.verify(counting(bench.truth, more), patience_s=0.5)
    assert (found["drained_after_s"] is None) is (lost > 0)
    events = {"events": len(bench.truth.pageviews), "twice": twice, "lost": lost}
    for view in ("pageviews_progress", "pageviews_summary"):
        assert statuses(found)[view] == "wrong"
        assert found["views"][view]["miscounted"] == {**events, "still_counting": False}
    assert "miscounted" not in found["views"]["users"]


def test_an_engine_is_not_blamed_if_messages_are_unfit(bench: Bench) -> None:
    rows = counting(bench.truth, 1)
    for view in ("purchases", "top_viewed_items"):
        rows[view] = pa.concat_tables([rows[view], rows[view].slice(0, 1)])
    found = bench.verify(rows, patience_s=0.5, unfit=UNFIT)
    of_pageviews = ("pageviews_progress", "pageviews_summary", "top_viewed_items")
    assert not_right(found) == {**dict.fromkeys(of_pageviews, "not compared"), "purchases": "wrong"}
    assert "pageviews" in found["views"]["pageviews_summary"]["reason"]


@pytest.mark.parametrize("updates_per_s", [0, 2])
def test_an_engine_that_ignores_updates_is_compared_with_the_rows_that_it_read(
    bench: Bench, updates_per_s: int
) -> None:
    now = rows_of(bench.truth)
    now["users"] = [(row[0], "new@example.com", *row[2:]) for row in now["users"]]
    given = {"ignores": ("users",), "updates_per_s": updates_per_s, "in_mysql": now}
    found = bench.verify(shop.views(bench.truth), 0.1, **given)
    if updates_per_s:
        assert not not_right(found)
        assert found["first_rows_of"] == ["users"]
    else:
        assert "users" in not_right(found)
        assert not found.get("first_rows_of")


def test_what_is_still_being_counted_is_not_lost(bench: Bench) -> None:
    """Each time it is read, the view shows one pageview more, but not all of them in time."""
    missing = count(-999)
    found = bench.verify(lambda view: counting(bench.truth, next(missing))[view], patience_s=0.2)
    assert found["views"]["pageviews_progress"]["miscounted"]["still_counting"] is True


def test_a_view_that_fails_or_is_absent_is_no_right_view(bench: Bench) -> None:
    rows = shop.views(bench.truth)
    rows["pageviews_summary"] = rows["pageviews_summary"].drop_columns(["total"])

    def read_view(view: str) -> pa.Table:
        if view == "hvu_test":
            raise NoSuchView("no such view")
        if view == "items":
            raise RacetrackError("it is gone")
        return rows[view]

    found = bench.verify(read_view, patience_s=0.5)
    assert found["views"]["hvu_test"] == {"status": "absent"}
    assert found["views"]["items"] == {"status": "unreadable", "reason": "it is gone"}
    assert statuses(found)["high_value_users"] == "right"
    assert "has no column total" in found["views"]["pageviews_summary"]["reason"]


def test_a_count_may_be_that_of_any_time_in_the_interval(
    db: duckdb.DuckDBPyConnection, truth: Shop
) -> None:
    view = WORKLOAD.view("profile_views_per_minute_last_10")
    conftest.load(db, truth)
    between_ms = [truth.now_ms + off_ms for off_ms in (-30_000, 30_000)]
    sources.between(db, *between_ms)
    sources.expect(db, WORKLOAD, view)
    verdicts, now_ms = [], truth.now_ms
    for off_ms in (-40_000, -30_000, -1, 0, 30_000, 40_000):
        truth.now_ms = now_ms + off_ms
        verdicts.append(compare(db, view, shop.views(truth)[view.name], 5).right)
    assert verdicts == [False, True, True, True, True, False]


def test_what_cdc_delivers_late_is_waited_for(bench: Bench) -> None:
    topics_of = Delivered(earlier(bench.truth), bench.truth)
    found = bench.verify(shop.views(bench.truth), delivered=topics_of)
    assert found["cdc"]["caught_up_after_s"] is not None
    tables = {name: table["status"] for name, table in found["cdc"]["tables"].items()}
    assert tables == dict.fromkeys(WORKLOAD.tables, "right")
    assert not not_right(found)
    assert found["cdc"]["statements"] == []


def test_what_cdc_delivers_wrong_is_not_the_engine_s_fault(bench: Bench) -> None:
    given = bench.truth.copy()
    given.purchases[:20] = [{**row, "quantity": 77} for row in given.purchases[:20]]
    found = bench.verify(shop.views(given), 2.0, delivered=Delivered(given), unfit=UNFIT)
    table = found["cdc"]["tables"]["purchases"]
    assert (table["status"], table["different"]) == ("wrong", 20)
    assert found["cdc"]["caught_up_after_s"] is None
    assert found["cdc"]["statements"] == ["TRUNCATE TABLE x (log)"]
    assert not not_right(found)
    assert wrong_views(Verified.model_validate(found)) == (
        "CDC delivered 20 rows that differ from MySQL, in purchases;"
        " Messages are unfit: pageviews (2)"
    )
    assert (bench.folder / "verify/cdc_purchases.csv").exists()


def test_hostile_values_are_compared(truth: Shop, tmp_path: Path) -> None:
    """One side of the comparison is as PyMySQL returns it, the other as fastavro does."""
    many = Decimal("-99999.9999")
    last = datetime(9999, 12, 31, 23, 59, 59)  # as PyMySQL returns it
    name = "🦓 \"'<b>&\n\0"
    of_items: dict[str, list[Any]] = {
        "id": [2**64 - 1, 2**63, 1],
        "name": [name, None, "x" * 2_000_000],
        "category": [None, None, "y"],
        "price": [many, None, Decimal("1.5")],
        "inventory": [4_294_967_295, None, -1],
        "inventory_updated_at": ["0000-00-00 00:00:00", None, last],
        "created_at": [last, None, last],
        "updated_at": [last, None, last],
    }
    view = WORKLOAD.view("items")
    with sources.open_database(WORKLOAD, tmp_path) as db:
        sources.take_table(db, view, list(zip(*of_items.values(), strict=True)))
        sources.expect(db, WORKLOAD, view)
        as_topic = {name: list(column) for name, column in of_items.items()}
        as_topic["id"] = [Decimal(2**64 - 1), Decimal(2**63), Decimal(1)]
        as_topic["inventory_updated_at"] = [None, None, "9999-12-31T23:59:59Z"]
        as_topic["name"][2] = "x" * 2_000_000 + "!"
        found = compare(db, view, pa.table(as_topic), 5)
        assert (found.compared, found.different, found.missing, found.extra) == (3, 2, 0, 0)
        by_id = {row.source["id"]: row.source for row in found.findings if row.source}
        assert by_id[2**64 - 1]["inventory_updated_at"] == "no time, such as 0000-00-00"
        assert by_id[2**64 - 1]["name"] == name
        shortened = str(by_id[1]["name"])
        assert shortened.endswith("… (2000000 characters)") and len(shortened) < 1_100
        sources.take_delivered(db, view, pa.table(as_topic))
        assert db.execute("SELECT min(price) FROM source.items").fetchone() == (many,)


def test_what_is_beyond_the_verifier_is_named_and_the_rest_compared(bench: Bench) -> None:
    rows = rows_of(bench.truth)
    rows["users"] = "MySQL: Unknown column 'email'"
    rows["items"] = [[row[0], *row[1:3], "free", *row[4:]] for row in rows["items"]]
    topics_of = Delivered(bench.truth)
    found = bench.verify(shop.views(bench.truth), delivered=topics_of, in_mysql=rows)
    tables = found["cdc"]["tables"]
    assert tables["users"]["reason"] == "MySQL: Unknown column 'email'"
    assert "column price of items" in tables["items"]["reason"]
    assert tables["purchases"]["status"] == "right"
    assert not not_right(found)
    message = wrong_views(Verified.model_validate(found))
    assert message and message.startswith("Not compared: the topic of items, the topic of users")


def earlier(truth: Shop) -> Shop:
    """Return the shop before the last pageview and the last purchase."""
    before = truth.copy()
    before.purchases.pop()
    before.pageviews.pop()
    return before
