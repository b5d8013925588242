"""Tests of the generator's writer to MySQL: purchases and changes are written once, in order, even
if MySQL fails meanwhile."""

import threading
import time
from collections.abc import Sequence

from loadgen.clock import NS_PER_S, Clock
from loadgen.config import load
from loadgen.mysql import MySqlError
from loadgen.schedule import Schedule
from loadgen.writer import Writer
from racetrack.workloads.shop.load.changes import Change, Deletes, Updates
from racetrack.workloads.shop.load.purchases import Purchases
from racetrack.workloads.shop.tests.load.shop_settings import load as load_shop
from tests.waiting import wait_until

TIMEOUT_S = 60.0
Row = tuple[int, int, int]


class FakeShop:
    """A fake shop that keeps the rows that are written. It can't be reached while it is `away`, and
    blocks until `go_on` is set."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.tried: list[list[Row]] = []
        self.order: list[str] = []
        self.empty = False
        self.away = False
        self.go_on = threading.Event()
        self.go_on.set()

    def write_purchases(self, buys: Sequence[Row]) -> None:
        self.go_on.wait(TIMEOUT_S)
        self.tried.append(list(buys))
        if self.away:
            raise MySqlError("2003: Can't connect")
        self.rows += buys
        self.order += ["purchase"] * len(buys)

    def apply(self, changes: Sequence[Change]) -> int:
        self.go_on.wait(TIMEOUT_S)
        if self.away:
            raise MySqlError("2003: Can't connect")
        self.order += [change.decide.__name__ for change in changes]
        return len(changes) if self.empty else 0


class Bench:
    """A writer with ten purchases a second, and a clock that the test sets."""

    def __init__(self, backlog: int = 1000) -> None:
        config = load({"MYSQL_PASSWORD": "x", "LOADGEN_PURCHASE_BACKLOG": str(backlog)})
        clock = Clock.anchored_now()
        self.start_ns = clock.now_ns()
        self.logged: list[str] = []
        self.shop = FakeShop()
        shop = load_shop()
        self.purchases = Purchases(shop, self.schedule(10))
        self.updates = Updates(shop, self.schedule(0))
        self.deletes = Deletes(shop, self.schedule(0))
        sources = [self.purchases, self.updates, self.deletes]
        self.writer = Writer(config, clock, sources, self.shop, self.logged.append)

    def schedule(self, per_s: int) -> Schedule:
        return Schedule.starting(self.start_ns, per_s * 1000, 1000 * NS_PER_S)

    def start(self, after_s: float) -> None:
        self.writer.start()
        self.tick(after_s)

    def tick(self, after_s: float) -> None:
        self.writer.tick(self.start_ns + int(after_s * NS_PER_S))

    def counts(self, after_s: float) -> dict[str, int]:
        return self.purchases.counts(self.start_ns + int(after_s * NS_PER_S))


def test_nothing_is_lost_when_it_is_back() -> None:
    bench = Bench()
    bench.shop.away = True
    bench.updates.schedule.change(bench.start_ns, 10_000)
    bench.start(1.05)
    wait_until(lambda: any("fails" in line for line in bench.logged), "the complaint")
    wait_until(lambda: any("10 updates wait" in line for line in bench.logged), "the other one")
    bench.tick(3.05)
    assert bench.purchases.done == 0
    bench.shop.away = False
    wait_until(lambda: bench.purchases.done == bench.updates.done == 30, "the thirtieth of each")
    bench.writer.stop(TIMEOUT_S)
    assert len(bench.shop.rows) == 30
    assert bench.counts(3.05) == {"due": 30, "done": 30, "refused": 0}
    assert any("is back" in line for line in bench.logged)


def test_a_failed_transaction_is_tried_again_as_it_was() -> None:
    bench = Bench()
    bench.shop.away = True
    bench.start(0.55)
    wait_until(lambda: bool(bench.shop.tried), "the first attempt")
    bench.tick(5.05)  # later purchases must not join a transaction that may be committed
    wait_until(lambda: len(bench.shop.tried) >= 2, "the second attempt")
    bench.shop.away = False
    bench.writer.stop(TIMEOUT_S)
    assert bench.shop.tried[1] == bench.shop.tried[0]


def test_beyond_the_backlog_purchases_are_refused_and_reported() -> None:
    bench = Bench(backlog=5)
    bench.shop.go_on.clear()
    bench.start(1.05)
    assert bench.counts(1.05)["refused"] == 5
    bench.writer.log_refused()
    [line] = bench.logged
    assert line.startswith("Refused 5 purchases: 5 changes are already waiting for MySQL")
    bench.writer.log_refused()
    assert len(bench.logged) == 1
    bench.shop.go_on.set()
    wait_until(lambda: bench.purchases.done == 5, "the backlog's end")
    bench.writer.stop(TIMEOUT_S)


def test_stopping_with_a_stuck_mysql_counts_what_is_left_and_does_not_wait() -> None:
    bench = Bench()
    bench.shop.go_on.clear()
    bench.start(1.05)
    start_s = time.monotonic()
    bench.writer.stop(0.05)
    assert time.monotonic() - start_s < TIMEOUT_S / 2
    assert bench.counts(1.05) == {"due": 10, "done": 0, "refused": 10}
    bench.shop.go_on.set()


def test_what_is_due_first_is_written_first_whatever_it_is() -> None:
    bench = Bench()
    # Purchases at 100, 200, 300 ms; updates at 125, 250, 375 ms; a deletion at 334 ms.
    bench.updates.schedule.change(bench.start_ns, 8_000)
    bench.deletes.schedule.change(bench.start_ns, 3_000)
    bench.shop.go_on.clear()
    bench.start(0.38)
    bench.shop.go_on.set()
    bench.writer.stop(TIMEOUT_S)
    order = "purchase new_price purchase other_vip_flag purchase cancellation next_status"
    assert bench.shop.order == order.split()
    assert (bench.purchases.done, bench.updates.done, bench.deletes.done) == (3, 3, 1)


def test_a_change_that_finds_no_row_is_refused_and_reported() -> None:
    bench = Bench()
    bench.shop.empty = True
    bench.deletes.schedule.change(bench.start_ns, 10_000)
    bench.start(1.05)
    bench.writer.stop(TIMEOUT_S)
    bench.writer.log_refused()
    assert (bench.deletes.done, bench.deletes.refused) == (0, 10)
    assert any("no row is left to change" in line for line in bench.logged)
