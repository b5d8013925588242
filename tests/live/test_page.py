"""The live page in a real browser: figures, controls, keys, a lost server, odd texts. Needs
Chromium (Debian: `apt-get install chromium`)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.live.driven import PHONE, WIDE, Tab
from tests.live.page_session import PageSession
from tests.report.browser import chromium, contrast, needs_chromium

pytestmark = [pytest.mark.slow, needs_chromium]
ODD = "<img src=x onerror=\"document.title='taken'\"> 'quoted' \u202e \U0001f642"
CHARTS = ("rate", "lag", "cpu", "memory", "noise")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def session() -> Iterator[PageSession]:
    """A session that has run for a minute and a half, and goes on."""
    session = PageSession(ran_s=90)
    yield session
    session.stop()


@pytest.fixture
def tab(browser: Browser, session: PageSession) -> Iterator[Tab]:
    """The page of the session."""
    opened = Tab(browser).open(session.url)
    yield opened
    opened.page.close()


def legend(tab: Tab, chart: str) -> list[str]:
    return tab.page.locator(f".chart.{chart} .legend .value").all_text_contents()


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_all_figures_are_text_and_nothing_moves(
    browser: Browser, session: PageSession, size: tuple[int, int], scheme: str
) -> None:
    tab = Tab(browser, size, scheme).open(session.url)
    session.tell("rate", "rate 5000")
    tab.page.wait_for_timeout(1500)  # the slow charts are drawn each second
    for chart in CHARTS:
        values = legend(tab, chart)
        assert values and all(re.search(r"\d", value) for value in values), (chart, values)
    for text in ("Deephaven", "PostgreSQL", "judged: kept up", "judged: undecided"):
        assert text in tab.text("#engines")
    assert tab.text("#target") == "5,000"
    seen: dict[str, Any] = tab.page.evaluate(
        """() => ({ width: document.documentElement.scrollWidth, shifts, spoken, policy,
        paper: getComputedStyle(document.querySelector(".panel")).backgroundColor,
        inks: ["body", ".muted", ".verdict.good", ".verdict.open", "#memory .bad"]
          .map((one) => getComputedStyle(document.querySelector(one)).color) })"""
    )
    assert seen["width"] <= size[0]
    assert seen["shifts"] < 0.01
    assert seen["spoken"] <= 2  # the figures are not announced
    assert seen["policy"] == [] and tab.errors == []
    assert all(contrast(ink, seen["paper"]) >= 4.5 for ink in seen["inks"]), seen
    tab.page.close()


def test_the_rate_is_set_by_slider_and_by_typing_and_shown_on_all_pages(
    browser: Browser, tab: Tab, session: PageSession
) -> None:
    other = Tab(browser, PHONE).open(session.url)
    tab.enter("#rate", "12k")
    for each in (tab, other):
        each.wait("#target", "12,000")
        each.wait("#events", "rate 12000")
        assert each.errors == []
    other.page.close()
    slider = tab.page.locator("#slider")
    slider.focus()
    for _ in range(3):  # in quick succession: one action
        slider.press("ArrowRight")
    tab.wait("#events", "rate 25000")
    tab.wait("#target", "25,000")
    assert session.actions == [("rate", {"per_s": 12_000}), ("rate", {"per_s": 25_000})]
    assert slider.get_attribute("aria-valuetext") == "25,000 per second"


def test_what_is_impossible_is_grey_and_says_why(tab: Tab, session: PageSession) -> None:
    session.forbidden = {"kill/mysql": "mysql keeps its data in memory only"}
    tab.wait("#services", "mysql keeps its data in memory only")
    assert tab.disabled("updates") and not tab.disabled("purchases")
    assert "The workload shop has no updates" in tab.text("#kinds")
    assert tab.disabled("kill/mysql") and not tab.disabled("kill/broker")
    tab.page.click('[data-control="kill/mysql"]', force=True)
    tab.wait("#answer", "mysql keeps its data in memory only")
    assert session.actions == []
    tab.page.click('[data-control="pause/broker"]')
    tab.wait("#events", "pause broker")
    tab.page.click('[data-control="resume/broker"]')
    tab.wait("#events", "resume broker")
    assert session.actions[-1] == ("resume", {"target": "broker"})


def test_without_the_token_the_page_only_shows(browser: Browser, session: PageSession) -> None:
    tab = Tab(browser).open(session.url.partition("#")[0])
    assert "carries the token" in tab.text("#why-not")
    assert tab.disabled("rate") and tab.disabled("end") and tab.disabled("kill/dh")
    tab.page.wait_for_timeout(500)
    assert re.search(r"\d", tab.text(".engine .lag"))
    tab.page.close()


def test_a_lost_server_is_said_and_regained(tab: Tab, session: PageSession) -> None:
    shifts = tab.page.evaluate("shifts")
    session.stop()
    tab.wait("#connection", "Connection lost")
    tab.wait("#spoken", "The connection to the session is lost.")
    assert tab.disabled("rate") and "is lost" in tab.text("#why-not")
    session.rates["events"] = 7000
    session.tell("rate", "rate 7000")  # while the page was away
    session.start()
    tab.wait("#connection", "Live")
    tab.wait("#spoken", "Connected again.")
    tab.wait("#events", "rate 7000")
    tab.wait("#target", "7,000")
    assert not tab.disabled("rate") and tab.text("#why-not") == ""
    assert tab.page.locator(".chart").count() == 6
    assert tab.page.evaluate("shifts") - shifts < 0.01


def test_texts_are_never_markup(tab: Tab, session: PageSession) -> None:
    session.tell("note", ODD)
    verdict = {"kind": "none", "text": ODD, "judged_s": 0.0}
    engines = [engine | {"verdict": verdict} for engine in session.state()["engines"]]
    in_the_way = {"what": "engine", "text": ODD}
    session.changes = {"engines": engines, "load_stopped": ODD, "in_the_way": in_the_way}
    for place in ("#events", ".engine .reason", "#in-the-way"):
        tab.wait(place, "<img src=x")
    session.odd = {"offered_per_s": None, "unknown": 3, "lag_ms/dh/count": 0}
    tab.page.wait_for_timeout(700)
    assert tab.page.locator("img").count() == 0
    assert tab.page.title() == "Deephaven + PostgreSQL · Racetrack live"
    assert tab.errors == []


def test_everything_works_by_keyboard(tab: Tab, session: PageSession) -> None:
    press = tab.page.keyboard.press
    press("+")
    tab.wait("#target", "6,000")
    press("r")
    tab.page.keyboard.type("9k")
    press("Enter")
    tab.wait("#target", "9,000")
    press("Escape")
    press("n")
    tab.page.keyboard.type("a+note? 1")  # `+` and `?` are only text here
    press("Enter")
    tab.wait("#events", "a+note? 1")
    press("Escape")
    press("v")
    press("Tab")
    press("Enter")
    tab.wait("#events", "kill dh")
    press("c")
    press("Home")
    tab.wait("#reading", "at 0:0")
    assert "offered5,000" in tab.text("#spoken").replace(" ", "")
    press("Escape")
    press("s")
    tab.wait("#spoken", "Deephaven running: lag")
    press("?")
    assert tab.page.locator("#keys").is_visible()
    assert "Raise the rate" in tab.text("#key-list")
    press("Escape")
    press("e")
    assert tab.page.locator("#end").is_visible()
    press("Enter")  # the first button continues the session
    assert ("end", {}) not in session.actions
    press("e")
    press("Tab")
    press("Enter")
    tab.wait("#connection", "Ended")
    tab.wait("#why-not", "The run folder is logs/fake.")
    assert session.actions[-1] == ("end", {})
    assert tab.errors == []
