"""Tests of the whole verification with a fake engine and fake sources: waiting, late views, and the
records of views."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest

from racetrack.analysis.outcome import wrong_views
from racetrack.clock import now_ms
from racetrack.config import Settings, load
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
EDGE_MS = 20_000


class Fakes:
    """A fake of the part of an engine that a verification uses."""

    def __init__(
        self, read_view: ReadView, needs: Sequence[str] = (), ignores: tuple[str, ...] = ()
    ) -> None:
        self._read_view, self.needs, self.ignores_updates_of = read_view, needs, ignores

    def read_view(self, stack: Stack, view: str) -> pa.Table:
        return self._read_view(view)

    def clock_slack_ms(self, settings: object) -> int:
        return 0


class Place:
    """A fake of the part of a stack that a verification uses."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    class endpoints:  # noqa: N801
        kafka = "nowhere:0"


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


def inputs(
    made: Shop,
    in_mysql: dict[str, Any] | None,
    delivered: "Delivered | None",
    unfit: sources.Unfit,
) -> verification.Inputs:
    """Return the inputs of a verification from this shop."""

    def take(
        db: duckdb.DuckDBPyConnection, where: object, topic: object, ends: object
    ) -> sources.Unfit:
        conftest.load_topics(db, made)
        return unfit

    return verification.Inputs(
        read_tables=lambda *_: in_mysql or rows_of(made),
        open_cdc=lambda *_: cast(CdcTopics, delivered),
        statements_without_messages=lambda *_: ["TRUNCATE TABLE x (log)"],
        take_topic=take,
        take_whole_topic=lambda *_: sources.Unfit(),
    )


class Delivered:
    """Fake topics of CDC. `read_on` moves to the next of these shops, and stays at the last one."""

    def __init__(self, *shops: Shop, altered: Callable[[str, list[dict[str, Any]]], None]) -> None:
        self._shops, self._altered = list(shops), altered
        self.unfit: dict[str, list[str]] = {}

    def read_on(self) -> int:
        """Move to the next shop; return 0 if there is none."""
        if len(self._shops) == 1:
            return 0
        self._shops.pop(0)
        return 1

    def table(self, view: View) -> pa.Table:
        """Return a table as its topic has it."""
        rows = [dict(row) for row in getattr(self._shops[0], view.name)]
        self._altered(view.name, rows)
        return pa.Table.from_pylist([{name: row[name] for name in view.columns} for row in rows])

    def close(self) -> None:
        pass


def verification_of(
    truth: Shop,
    folder: Path,
    read_view: ReadView,
    patience_s: float = 60.0,
    delivered: Delivered | None = None,
    in_mysql: dict[str, Any] | None = None,
    unfit: sources.Unfit | None = None,
    ignores: tuple[str, ...] = (),
    updates_per_s: int = 0,
) -> Verification:
    """Return a verification. `patience_s` is the time for a view to become right. `delivered` are
    the topics of CDC; without them the engine uses no CDC. `in_mysql` replaces the tables' rows.
    `unfit` are pageviews that were left out. The engine `ignores` updates of these tables."""
    progress = shop.views(truth)["pageviews_progress"].to_pylist()
    ends = [row["total"] for row in sorted(progress, key=lambda row: row["partition"])]
    needs = ("debezium",) if delivered else ()
    engine = cast(Engine, Fakes(read_view, needs, ignores))
    place = cast(Stack, Place(load({"UPDATES_PER_SECOND": str(updates_per_s)})))
    paused = Settled(time.monotonic(), ends, [0] * len(ends), ends)
    return Verification(
        engine,
        place,
        paused,
        folder,
        lambda _: None,
        inputs(truth, in_mysql, delivered, unfit or sources.Unfit()),
        verification.Limits(patience_s, patience_s, min(patience_s, 0.5), look_every_s=0.01),
    )


def verify(*given: Any, **more: Any) -> dict[str, Any]:
    """Verify one engine; return the record. See `verification_of` for the arguments."""
    return verification_of(*given, **more).run().model_dump(mode="json", exclude_unset=True)


def statuses(found: dict[str, Any]) -> dict[str, str]:
    return {name: view["status"] for name, view in found["views"].items()}


def test_a_faultless_engine(truth: Shop, tmp_path: Path) -> None:
    rows = shop.views(truth)
    found = verify(truth, tmp_path / "verify", rows.__getitem__)
    assert statuses(found) == {view.name: "right" for view in VIEWS}
    assert found["drained_after_s"] is not None
    assert found["source_rows"]["pageviews"] == len(truth.pageviews)
    assert not (tmp_path / "verify").exists()


def test_views_that_are_late_are_waited_for(truth: Shop, tmp_path: Path) -> None:
    rows, early, reads = shop.views(truth), shop.views(earlier(truth)), dict[str, int]()

    def read_view(view: str) -> pa.Table:
        reads[view] = reads.get(view, 0) + 1
        return (early if reads[view] < 4 else rows)[view]

    found = verify(truth, tmp_path / "verify", read_view)
    assert set(statuses(found).values()) == {"right"}
    assert not list((tmp_path / "verify").glob("*"))


def test_engines_on_one_input_are_verified_together_and_drain_alone(
    truth: Shop, tmp_path: Path
) -> None:
    rows, early, slow_s = shop.views(truth), shop.views(earlier(truth)), 1.5
    began_s = time.monotonic()

    def read_slowly(view: str) -> pa.Table:
        return (rows if time.monotonic() > began_s + slow_s else early)[view]

    found = verification.verify_together(
        {
            "slow": verification_of(truth, tmp_path / "slow", read_slowly),
            "fast": verification_of(truth, tmp_path / "fast", rows.__getitem__),
        },
        lambda: None,
    )
    assert list(found) == ["slow", "fast"]
    drained_s = {name: of.drained_after_s for name, of in found.items()}
    assert drained_s["slow"] and drained_s["slow"] >= slow_s - 0.1
    assert drained_s["fast"] and drained_s["fast"] < slow_s - 0.1


def test_a_failed_check_ends_the_verification_of_all(truth: Shop, tmp_path: Path) -> None:
    early = shop.views(earlier(truth))
    waiting = {
        name: verification_of(truth, tmp_path / name, early.__getitem__) for name in ("a", "b")
    }

    def check() -> None:
        raise RacetrackError("broker has ended")

    with pytest.raises(RacetrackError, match="broker has ended"):
        verification.verify_together(waiting, check)


def test_an_engine_that_never_drains_is_compared_as_it_is(truth: Shop, tmp_path: Path) -> None:
    early = shop.views(earlier(truth))
    found = verify(truth, tmp_path / "verify", early.__getitem__, patience_s=0.5)
    assert found["drained_after_s"] is None
    assert statuses(found)["purchases"] == statuses(found)["pageviews_progress"] == "wrong"
    assert statuses(found)["users"] == "right"
    view = found["views"]["purchases"]
    assert (view["compared"], view["missing"]) == (200, 1)
    assert view["first"][0]["source"]["id"] == 200
    lines = (tmp_path / "verify" / "purchases.csv").read_text().splitlines()
    assert lines[0].startswith("finding,source id,engine id,source user_id,engine user_id,")
    assert lines[1].startswith("missing,200,,")


def counting(truth: Shop, more: int) -> dict[str, pa.Table]:
    """Return the views of an engine that counted `more` pageviews too many in partition 1."""
    content = shop.views(truth)
    for view, of in (
        ("pageviews_progress", lambda row: row["partition"] == 1),
        ("pageviews_summary", bool),
    ):
        rows = content[view].to_pylist()
        for row in filter(of, rows):
            row["total"] += more
        content[view] = pa.Table.from_pylist(rows)
    return content


@pytest.mark.parametrize(("more", "twice", "lost"), [(90, 90, 0), (-7, 0, 7)])
def test_what_was_counted_twice_or_lost_is_reported_in_events(
    truth: Shop, tmp_path: Path, more: int, twice: int, lost: int
) -> None:
    rows = counting(truth, more)
    found = verify(truth, tmp_path / "verify", rows.__getitem__, patience_s=0.5)
    assert (found["drained_after_s"] is None) is (lost > 0)
    for view in ("pageviews_progress", "pageviews_summary"):
        assert statuses(found)[view] == "wrong"
        assert found["views"][view]["miscounted"] == {
            "events": len(truth.pageviews),
            "twice": twice,
            "lost": lost,
            "still_counting": False,
        }
    assert "miscounted" not in found["views"]["users"]


def test_an_engine_is_not_blamed_if_messages_are_unfit(truth: Shop, tmp_path: Path) -> None:
    rows = counting(truth, 1)
    for view in ("purchases", "top_viewed_items"):
        rows[view] = pa.concat_tables([rows[view], rows[view].slice(0, 1)])
    folder = tmp_path / "verify"
    found = verify(truth, folder, rows.__getitem__, patience_s=0.5, unfit=UNFIT)
    wrong = {name: status for name, status in statuses(found).items() if status != "right"}
    assert wrong == {
        "pageviews_progress": "not compared",
        "pageviews_summary": "not compared",
        "top_viewed_items": "not compared",
        "purchases": "wrong",  # has no pageviews
    }
    assert "pageviews" in found["views"]["pageviews_summary"]["reason"]


@pytest.mark.parametrize("updates_per_s", [0, 2])
def test_an_engine_that_ignores_updates_is_compared_with_the_rows_that_it_read(
    truth: Shop, tmp_path: Path, updates_per_s: int
) -> None:
    first = shop.views(truth)
    now = rows_of(truth)
    now["users"] = [(row[0], "new@example.com", *row[2:]) for row in now["users"]]
    given = {"ignores": ("users",), "updates_per_s": updates_per_s, "in_mysql": now}
    found = verify(truth, tmp_path, first.__getitem__, 0.1, **given)
    wrong = {name for name, status in statuses(found).items() if status != "right"}
    if updates_per_s:
        assert not wrong
        assert found["first_rows_of"] == ["users"]
    else:
        assert "users" in wrong
        assert not found.get("first_rows_of")


def test_what_is_still_being_counted_is_not_lost(truth: Shop, tmp_path: Path) -> None:
    """Each time it is read, the view shows one pageview more, but not all of them in time."""
    missing = [1_000]

    def read_view(view: str) -> pa.Table:
        missing[0] -= 1
        return counting(truth, -missing[0])[view]

    found = verify(truth, tmp_path / "verify", read_view, patience_s=0.5)
    assert found["views"]["pageviews_progress"]["miscounted"]["still_counting"] is True


def test_a_view_that_fails_or_is_absent_is_no_right_view(truth: Shop, tmp_path: Path) -> None:
    rows = shop.views(truth)

    def read_view(view: str) -> pa.Table:
        if view == "hvu_test":
            raise NoSuchView("no such view")
        if view == "items":
            raise RacetrackError("it is gone")
        return rows[view].drop_columns(["total"]) if view == "pageviews_summary" else rows[view]

    found = verify(truth, tmp_path, read_view, patience_s=0.5)
    assert found["views"]["hvu_test"] == {"status": "absent"}
    assert found["views"]["items"] == {"status": "unreadable", "reason": "it is gone"}
    assert statuses(found)["high_value_users"] == "right"
    assert "has no column total" in found["views"]["pageviews_summary"]["reason"]


def test_a_count_may_be_that_of_any_time_in_the_interval(
    db: duckdb.DuckDBPyConnection, truth: Shop
) -> None:
    view = WORKLOAD.view("profile_views_per_minute_last_10")
    conftest.load(db, truth)
    verdicts = []
    sources.between(db, truth.now_ms - 30_000, truth.now_ms + 30_000)
    sources.expect(db, WORKLOAD, view)
    for off_ms in (-40_000, -30_000, -1, 0, 30_000, 40_000):
        truth.now_ms += off_ms
        rows = shop.views(truth)[view.name]
        truth.now_ms -= off_ms
        verdicts.append(compare(db, view, rows, 5).right)
    assert verdicts == [False, True, True, True, True, False]


def as_sent(_table: str, _rows: list[dict[str, Any]]) -> None:
    """Leave the rows as they are."""


def test_what_cdc_delivers_late_is_waited_for(truth: Shop, tmp_path: Path) -> None:
    rows = shop.views(truth)
    topics_of = Delivered(earlier(truth), truth, altered=as_sent)
    found = verify(truth, tmp_path / "verify", rows.__getitem__, delivered=topics_of)
    assert found["cdc"]["caught_up_after_s"] is not None
    tables = found["cdc"]["tables"]
    assert {name: table["status"] for name, table in tables.items()} == dict.fromkeys(
        WORKLOAD.tables, "right"
    )
    assert set(statuses(found).values()) == {"right"}
    assert found["cdc"]["statements"] == []


def test_what_cdc_delivers_wrong_is_not_the_engine_s_fault(truth: Shop, tmp_path: Path) -> None:
    def null_as_default(table: str, rows: list[dict[str, Any]]) -> None:
        if table == "purchases":
            for row in rows[:20]:
                row["quantity"] = 77

    given = truth.copy()
    null_as_default("purchases", given.purchases)
    content = shop.views(given)
    topics_of = Delivered(truth, altered=null_as_default)
    found = verify(
        truth,
        tmp_path / "verify",
        content.__getitem__,
        patience_s=2.0,
        delivered=topics_of,
        unfit=UNFIT,
    )
    table = found["cdc"]["tables"]["purchases"]
    assert (table["status"], table["different"]) == ("wrong", 20)
    assert found["cdc"]["caught_up_after_s"] is None
    assert found["cdc"]["statements"] == ["TRUNCATE TABLE x (log)"]
    assert set(statuses(found).values()) == {"right"}
    message = wrong_views(Verified.model_validate(found))
    assert message == (
        "CDC delivered 20 rows that differ from MySQL, in purchases;"
        " Messages are unfit: pageviews (2)"
    )
    assert (tmp_path / "verify/cdc_purchases.csv").exists()


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


def test_what_is_beyond_the_verifier_is_named_and_the_rest_compared(
    truth: Shop, tmp_path: Path
) -> None:
    content = shop.views(truth)
    rows = rows_of(truth)
    rows["users"] = "MySQL: Unknown column 'email'"
    rows["items"] = [[row[0], *row[1:3], "free", *row[4:]] for row in rows["items"]]
    topics_of = Delivered(truth, altered=as_sent)
    found = verify(truth, tmp_path / "verify", content.__getitem__, 60.0, topics_of, rows)
    assert found["cdc"]["tables"]["users"]["reason"] == "MySQL: Unknown column 'email'"
    assert "column price of items" in found["cdc"]["tables"]["items"]["reason"]
    assert found["cdc"]["tables"]["purchases"]["status"] == "right"
    assert set(statuses(found).values()) == {"right"}
    message = wrong_views(Verified.model_validate(found))
    assert message and message.startswith("Not compared: the topic of items, the topic of users")


def earlier(truth: Shop) -> Shop:
    """Return the shop before the last pageview and the last purchase."""
    before = truth.copy()
    before.purchases.pop()
    before.pageviews.pop()
    return before
