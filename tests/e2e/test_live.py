"""End-to-end tests of live sessions, one of them with two engines and used in a real browser.
tests/live has the rest of the page. Needs Chromium (Debian: `apt-get install chromium`)."""

import csv
import re
import signal
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser

from racetrack.results.folder import engine_folders
from racetrack.results.folder import read_run as read_record
from tests.e2e.shared import Door, NothingLeft, Open
from tests.live.driven import WIDE, Tab
from tests.report.browser import chromium, needs_chromium
from tests.some_engines import CALIBRATION, EXAMPLE

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


@needs_chromium
def test_the_curves_follow_the_rate_and_views_are_read(tab: Tab) -> None:
    wait_for_rates(tab, 500)
    tab.page.fill("#rate", "2k")
    tab.page.press("#rate", "Enter")
    tab.wait("#target", "2,000")
    wait_for_rates(tab, 2000)
    for chart in ("rate", "lag", "cpu", "memory", "noise"):
        values = tab.page.locator(f".chart.{chart} .legend .value").all_text_contents()
        assert any(re.search(r"\d", value) for value in values), chart
    assert re.search(r"\d", tab.text(".engine .lag dd"))
    tab.page.fill("#kind-reads", "3")
    tab.page.press("#kind-reads", "Enter")
    tab.wait("#events", "reads 0/s → 3/s")
    times = "[...document.querySelectorAll('.engine .reads dd')].map((one) => one.textContent)"
    are_known = f"{times}.length && {times}.every((time) => /\\d/.test(time))"
    tab.until(are_known, within_s=FOLLOWS_WITHIN_S)
    assert tab.errors == []


@needs_chromium
def test_a_killed_engine_is_said_and_comes_back(tab: Tab) -> None:
    tab.page.click('[data-control="kill/pg"]')
    tab.until(f"{STATUSES}.includes('killed')", within_s=FOLLOWS_WITHIN_S)
    assert "kill" in tab.text("#spoken")
    assert tab.page.locator("#events .bad", has_text="kill").count() >= 1
    tab.until("document.querySelector('[data-control=\"restart/pg\"]').ariaDisabled === 'false'")
    tab.page.click('[data-control="restart/pg"]')
    running = f"{STATUSES}.every((status) => status === 'running')"
    tab.until(running, within_s=RESTARTS_WITHIN_S)
    wait_for_rates(tab, 2000)


@needs_chromium
def test_the_page_ends_the_session_and_its_folder_has_a_record_of_each_engine(
    live: Door, tab: Tab, url: str, nothing_left: NothingLeft
) -> None:
    metrics = url.replace("/#", "/metrics#")
    assert f'racetrack_lag_seconds{{engine="{EXAMPLE}"' in httpx.get(metrics).text
    tab.page.click("#ask-end")
    tab.page.click("#end button[value=end]")
    assert live.wait() == 0, live.output
    tab.wait("#connection", "Ended")
    nothing_left()
    folder = live.folder
    with (folder / "actions.csv").open(newline="") as rows:
        actions = [row["action"] for row in csv.DictReader(rows)]
    assert actions == ["rate", "rate", "events", "kill", "restart", "end"]
    for path in engine_folders(folder):
        assert read_record(path).outcome == "ok"
        assert (path / "views.csv").stat().st_size > 100


def test_ctrl_c_ends_a_session_in_good_order(door: Open, nothing_left: NothingLeft) -> None:
    session = door("race", "live", CALIBRATION, "--rate", "500", "--port", "0")
    session.until(r"rate \S+ → 500/s")
    session.signal(signal.SIGINT)
    assert session.wait() == 0, session.output
    nothing_left()
    assert read_record(session.folder).outcome == "ok"
