"""Tests that an hour of a session needs little memory in the server and in a real browser, and that
no peak is lost. Needs Chromium (Debian: `apt-get install chromium`)."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import psutil
import pytest
from playwright.sync_api import CDPSession

from racetrack.config import REPO
from tests.live.driven import Tab
from tests.live.hour import HOUR_S, PEAKED, PEAKS_MS
from tests.report.browser import chromium, needs_chromium

pytestmark = [pytest.mark.slow, needs_chromium]
MB = 1_000_000
MOST_MB, WITHIN_S = 300.0, 120.0
BESIDE_PX = 6  # to either side of a peak's place


@dataclass
class Peak:
    """Greatest memory so far, in MB."""

    server: float = 0.0
    js_heap: float = 0.0
    renderers: float = 0.0

    def add(self, server: psutil.Process, page: CDPSession, browser: CDPSession) -> None:
        metrics = page.send("Performance.getMetrics")["metrics"]
        heap = next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize")
        processes = browser.send("SystemInfo.getProcessInfo")["processInfo"]
        of_pages = [psutil.Process(each["id"]) for each in processes if each["type"] == "renderer"]
        private = sum(process.memory_full_info().uss for process in of_pages)
        self.server = max(self.server, server.memory_info().rss / MB)
        self.js_heap, self.renderers = (
            max(self.js_heap, heap / MB),
            max(self.renderers, private / MB),
        )


@pytest.fixture
def server() -> Iterator["tuple[psutil.Process, str]"]:
    """The process of the server, and its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.live.hour"],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout and process.stdin
        yield psutil.Process(process.pid), process.stdout.readline().strip()
        process.stdin.close()


def test_an_hour_of_session_is_small_and_keeps_its_peaks(
    server: "tuple[psutil.Process, str]",
) -> None:
    process, url = server
    began_s, before_mb = time.monotonic(), process.memory_info().rss / MB
    with chromium() as browser:
        tab = Tab(browser).open(url)
        tab.page.keyboard.press("4")  # the whole session
        page, whole = tab.page.context.new_cdp_session(tab.page), browser.new_browser_cdp_session()
        page.send("Performance.enable")
        peak = Peak()
        while tab.text("#elapsed") != "1:00:00":
            assert time.monotonic() < began_s + WITHIN_S, tab.text("#elapsed")
            peak.add(process, page, whole)
            tab.page.wait_for_timeout(500)
        peak.add(process, page, whole)
        print(
            f"an hour in {time.monotonic() - began_s:.0f} s: server {peak.server:.0f} MB"
            f" ({peak.server - before_mb:.0f} more than before), JavaScript heap"
            f" {peak.js_heap:.0f} MB, renderers {peak.renderers:.0f} MB"
        )
        assert max(peak.server, peak.js_heap, peak.renderers) < MOST_MB
        _assert_peaks_in_chart(tab)
        assert tab.errors == []
    _assert_peaks_in_history(url)


def _assert_peaks_in_chart(tab: Tab) -> None:
    tab.page.click("#freeze")
    box = tab.page.locator(".chart.lag .u-over").bounding_box()
    assert box
    for at_s, lag_ms in PEAKS_MS.items():
        seen = set()
        for beside in range(-BESIDE_PX, BESIDE_PX + 1):
            x = box["x"] + box["width"] * at_s / HOUR_S + beside
            tab.page.mouse.move(x, box["y"] + 50)
            seen.add(tab.text(".chart.lag .legend .value"))
        assert f"{lag_ms / 1000:.1f} s" in seen, (at_s, seen)


def _assert_peaks_in_history(url: str) -> None:
    """Check the history that a page gets which is opened now."""
    with httpx.stream("GET", url.partition("#")[0] + "events", timeout=20) as stream:
        hello = next(line for line in stream.iter_lines() if line.startswith("data: "))
    values = json.loads(hello.removeprefix("data: "))["history"]["values"][PEAKED]
    assert sorted(value for value in values if value and value > 90_000) == list(PEAKS_MS.values())
