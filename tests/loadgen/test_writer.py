"""Purchases: a pageview and a row each, at their due times, with MySQL there or not."""

import threading
import time
from collections.abc import Callable, Sequence

from loadgen.clock import NS_PER_S, Clock
from loadgen.config import Config, load
from loadgen.mysql import MySqlError
from loadgen.purchases import Purchases
from loadgen.schedule import Schedule
from loadgen.sequence import CHANNELS

TIMEOUT_S = 10.0
Row = tuple[int, int, int]


class FakeShop:
    """Keeps what is written; away while `away` is set, and stuck while `stuck` is."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.tried: list[list[Row]] = []
        self.away = False
        self.go_on = threading.Event()
        self.go_on.set()

    def write_purchases(self, buys: Sequence[Row], prices: Sequence[int]) -> None:
        self.go_on.wait(TIMEOUT_S)
        self.tried.append(list(buys))
        if self.away:
            raise MySqlError("2003: Can't connect")
        self.rows += buys


class Bench:
    """Purchases at ten a second, with the time in the test's hands."""

    def __init__(self, backlog: int = 1000) -> None:
        self.config: Config = load(
            {"MYSQL_PASSWORD": "x", "LOADGEN_PURCHASE_BACKLOG": str(backlog)}
        )
        self.clock = Clock.anchored_now()
        self.start_ns = self.clock.now_ns()
        self.views: list[tuple[int, int, int]] = []
        self.logged: list[str] = []
        self.shop = FakeShop()
        self.purchases = Purchases(
            self.config,
            self.clock,
            Schedule.starting(self.start_ns, 10_000, 1000 * NS_PER_S),
            view=lambda user, page, due_ns: self.views.append((user, page, due_ns)),
            log=self.logged.append,
            shop=self.shop,
        )

    def tick(self, after_s: float) -> None:
        self.purchases.tick(self.start_ns + int(after_s * NS_PER_S))

    def counts(self, after_s: float) -> dict[str, int]:
        return self.purchases.counts(self.start_ns + int(after_s * NS_PER_S))


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not come"
        time.sleep(0.001)


def test_each_purchase_is_a_view_of_the_product_by_the_customer_and_a_row() -> None:
    bench = Bench()
    bench.purchases.start()
    bench.tick(2.05)
    bench.purchases.stop(TIMEOUT_S)
    assert len(bench.shop.rows) == 20
    viewed = [(user, page // len(CHANNELS) + 1) for user, page, _ in bench.views]
    assert viewed == [(user, item) for user, item, _ in bench.shop.rows]
    due = [round((due_ns - bench.start_ns) / NS_PER_S, 6) for _, _, due_ns in bench.views]
    assert due == [round((i + 1) / 10, 6) for i in range(20)]
    assert bench.counts(2.05) == {"due": 20, "done": 20, "refused": 0}


def test_views_do_not_wait_for_mysql_and_nothing_is_lost_when_it_is_back() -> None:
    bench = Bench()
    bench.shop.away = True
    bench.purchases.start()
    bench.tick(1.05)
    wait_until(lambda: any("fails" in line for line in bench.logged), "the complaint")
    bench.tick(3.05)
    assert len(bench.views) == 30
    assert bench.purchases.done == 0
    bench.shop.away = False
    wait_until(lambda: bench.purchases.done == 30, "the thirtieth row")
    bench.purchases.stop(TIMEOUT_S)
    assert len(bench.shop.rows) == 30
    assert any("is back" in line for line in bench.logged)


def test_a_failed_transaction_is_tried_again_as_it_was() -> None:
    bench = Bench()
    bench.shop.away = True
    bench.purchases.start()
    bench.tick(0.55)
    wait_until(lambda: bool(bench.shop.tried), "the first attempt")
    bench.tick(5.05)  # more wait now, but what failed may have been committed: it stays one piece
    wait_until(lambda: len(bench.shop.tried) >= 2, "the second attempt")
    bench.shop.away = False
    bench.purchases.stop(TIMEOUT_S)
    assert bench.shop.tried[1] == bench.shop.tried[0]


def test_beyond_the_backlog_purchases_are_refused_and_it_is_said() -> None:
    bench = Bench(backlog=5)
    bench.shop.go_on.clear()
    bench.purchases.start()
    bench.tick(1.05)
    assert bench.counts(1.05)["refused"] == 5
    bench.purchases.say_refused()
    assert bench.logged == ["Refused 5 purchases: 5 wait for MySQL already"]
    bench.purchases.say_refused()
    assert len(bench.logged) == 1
    bench.shop.go_on.set()
    wait_until(lambda: bench.purchases.done == 5, "the backlog's end")
    bench.purchases.stop(TIMEOUT_S)
    assert len(bench.views) == 10


def test_stopping_with_a_stuck_mysql_counts_what_is_left_and_does_not_wait() -> None:
    bench = Bench()
    bench.shop.go_on.clear()
    bench.purchases.start()
    bench.tick(1.05)
    start_s = time.monotonic()
    bench.purchases.stop(0.05)
    assert time.monotonic() - start_s < 2.0
    assert bench.counts(1.05) == {"due": 10, "done": 0, "refused": 10}
    bench.shop.go_on.set()
