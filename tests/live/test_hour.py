"""A test that an hour of a session needs little memory in the server and in a real browser, and
that no peak is lost. Needs Chromium (Debian: `apt-get install chromium`)."""

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest
from playwright.sync_api import CDPSession

from racetrack.config import REPO
from tests.live.driven import Tab
from tests.live.hour import HOUR_S, PEAKS_MS
from tests.report.browser import chromium, needs_chromium

pytestmark = [pytest.mark.slow, needs_chromium]
MOST_BYTES, WITHIN_S = 300_000_000, 120.0
BESIDE = 0.005  # of a chart's width, to either side of a peak's place


@pytest.fixture
def server() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.live.hour"],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        yield process
        process.stdin.close()


def memory(server: psutil.Process, browser: CDPSession) -> int:
    """Return the memory of the server or of the renderers, whichever is more, in bytes."""
    processes = browser.send("SystemInfo.getProcessInfo")["processInfo"]
    of_pages = [psutil.Process(each["id"]) for each in processes if each["type"] == "renderer"]
    private = sum(process.memory_full_info().uss for process in of_pages)
    return max(server.memory_info().rss, private)


def test_an_hour_of_session_is_small_and_keeps_its_peaks(server: "subprocess.Popen[str]") -> None:
    assert server.stdout
    with chromium() as browser:
        tab = Tab(browser).open(server.stdout.readline().strip())
        tab.page.keyboard.press("4")  # the whole session
        process, whole = psutil.Process(server.pid), browser.new_browser_cdp_session()
        give_up_s = time.monotonic() + WITHIN_S
        while tab.text("#elapsed") != "1:00:00":
            assert time.monotonic() < give_up_s, tab.text("#elapsed")
            assert memory(process, whole) < MOST_BYTES
            tab.page.wait_for_timeout(500)
        tab.page.click("#freeze")
        for at_s, lag_ms in PEAKS_MS.items():
            seen = set()
            for step in range(-6, 7):
                tab.point_at("lag", at_s / HOUR_S + BESIDE * step / 6)
                seen.add(tab.text(".chart.lag .legend .value"))
            assert f"{lag_ms / 1000:.1f} s" in seen, (at_s, seen)
        assert tab.errors == []
