"""End-to-end tests of `./race live` with two engines, used in a real browser: curves follow the
rate, a killed engine is reported, the page survives a reload and a lost server, two pages agree,
and the page works with the keyboard and on a phone. Needs Chromium (Debian: `apt-get install
chromium`)."""

import csv
import re
import signal
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.e2e.shared import Door, run_folder
from tests.live.driven import PHONE, WIDE, Tab
from tests.report.browser import chromium, needs_chromium
from tests.some_engines import EXAMPLE

pytestmark = [pytest.mark.e2e, needs_chromium]
ENGINES = (EXAMPLE, "pg")
READY_WITHIN_S, FOLLOWS_WITHIN_S, RESTARTS_WITHIN_S = 120.0, 30.0, 60.0
STATUSES = "[...document.querySelectorAll('.engine .status')].map((one) => one.dataset.status)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def live() -> Iterator[Door]:
    """Start a session of both engines. The last test ends it."""
    live = Door("race", "live", *ENGINES, "--rate", "500", "--port", "0")
    yield live
    if live.process.poll() is None:
        live.signal(signal.SIGINT)
        live.wait()


@pytest.fixture(scope="module")
def url(live: Door) -> str:
    found = re.search(r"http://\S+", live.until(r"http://127\.0\.0\.1:\d+/#token="))
    assert found
    return found[0]


@pytest.fixture(scope="module")
def tab(browser: Browser, url: str) -> Tab:
    """Open a page of the session, and wait until the stack is up."""
    tab = Tab(browser, WIDE).open(url)
    tab.until(
        "document.querySelector('[data-control=rate]').getAttribute('aria-disabled') === 'false'",
        within_s=READY_WITHIN_S,
    )
    return tab


def wait_for_rates(tab: Tab, per_s: int) -> None:
    """Wait until the offered, published and counted rates of all engines are near a rate."""
    tab.until(
        """(perS) => {
          const shown = [...document.querySelectorAll(".chart.rate .legend .value")]
            .map((one) => Number.parseFloat(one.textContent.replaceAll(",", "")));
          return shown.length === 4 && shown.every((one) => Math.abs(one - perS) < 0.4 * perS);
        }""",
        per_s,
        FOLLOWS_WITHIN_S,
    )


def set_rate(tab: Tab, text: str) -> None:
    tab.page.fill("#rate", text)
    tab.page.press("#rate", "Enter")


def test_the_curves_follow_the_rate(tab: Tab) -> None:
    wait_for_rates(tab, 500)
    set_rate(tab, "2k")
    tab.wait("#target", "2,000")
    wait_for_rates(tab, 2000)
    for chart in ("rate", "lag", "cpu", "memory", "noise"):
        values = tab.page.locator(f".chart.{chart} .legend .value").all_text_contents()
        assert any(re.search(r"\d", value) for value in values), chart
    assert re.search(r"\d", tab.text(".engine .lag dd"))
    assert tab.errors == []


def test_a_wrong_rate_is_refused_in_words(tab: Tab) -> None:
    set_rate(tab, "fast")
    tab.wait("#answer", "'fast' is not a rate")
    tab.page.fill("#rate", "")


def test_a_reload_in_mid_run_keeps_the_history(tab: Tab) -> None:
    tab.page.reload()
    tab.wait("#connection", "Live")
    tab.wait("#events", "2,000/s")
    box = tab.page.locator(".chart.rate .u-over").bounding_box()
    assert box
    elapsed = tab.text("#elapsed")
    tab.page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 60)
    tab.wait("#reading", "at 0:")
    assert elapsed != "0:00"
    tab.page.mouse.move(0, 0)
    wait_for_rates(tab, 2000)


def test_two_pages_and_a_phone_agree(browser: Browser, url: str, tab: Tab) -> None:
    phone = Tab(browser, PHONE).open(url)
    set_rate(phone, "1k")
    for each in (tab, phone):
        each.wait("#target", "1,000")
        wait_for_rates(each, 1000)
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    assert phone.page.evaluate("shifts") < 0.1
    assert phone.errors == []
    phone.page.close()


def test_views_are_read_at_a_rate(tab: Tab) -> None:
    tab.page.fill("#kind-reads", "3")
    tab.page.press("#kind-reads", "Enter")
    tab.wait("#events", "reads 0/s → 3/s")
    times = "[...document.querySelectorAll('.engine .reads dd')].map((one) => one.textContent)"
    are_known = f"{times}.length && {times}.every((time) => /\\d/.test(time))"
    tab.until(are_known, within_s=FOLLOWS_WITHIN_S)


def test_a_killed_engine_is_said_and_comes_back(tab: Tab) -> None:
    tab.page.click('[data-control="kill/pg"]')
    tab.until(f"{STATUSES}.includes('killed')", within_s=FOLLOWS_WITHIN_S)
    assert "kill" in tab.text("#spoken")
    assert tab.page.locator("#events .bad", has_text="kill").count() >= 1
    tab.until("document.querySelector('[data-control=\"restart/pg\"]').ariaDisabled === 'false'")
    tab.page.click('[data-control="restart/pg"]')
    running = f"{STATUSES}.every((status) => status === 'running')"
    tab.until(running, within_s=RESTARTS_WITHIN_S)
    wait_for_rates(tab, 1000)


def test_all_by_keyboard(tab: Tab) -> None:
    set_rate(tab, "1k")
    wait_for_rates(tab, 1000)
    tab.page.locator("#rate").blur()
    press = tab.page.keyboard.press
    press("+")
    tab.wait("#target", "1,200")
    press("r")
    tab.page.keyboard.type("1k")
    press("Enter")
    tab.wait("#target", "1,000")
    press("Escape")
    press("n")
    tab.page.keyboard.type("by keyboard")
    press("Enter")
    tab.wait("#events", "by keyboard")
    press("Escape")
    press("s")
    tab.wait("#spoken", "Offered ")


def test_a_lost_server_is_said_and_regained(live: Door, tab: Tab) -> None:
    live.signal(signal.SIGSTOP)
    try:
        tab.wait("#connection", "Connection lost")
        assert tab.disabled("rate") and "is lost" in tab.text("#why-not")
    finally:
        live.signal(signal.SIGCONT)
    tab.wait("#connection", "Live")
    wait_for_rates(tab, 1000)
    assert not tab.disabled("rate")


def test_the_page_ends_the_session(live: Door, tab: Tab, nothing_left: Callable[[], None]) -> None:
    tab.page.click("#ask-end")
    tab.page.click("#end button[value=end]")
    assert live.wait() == 0, live.output
    tab.wait("#connection", "Ended")
    nothing_left()
    with (run_folder(live.output) / "actions.csv").open(newline="") as rows:
        actions = [row["action"] for row in csv.DictReader(rows)]
    assert {"rate", "kill", "restart", "note"} <= set(actions)
