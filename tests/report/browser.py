"""Pages in a real browser: `look` loads one in Chromium and returns the result of a probe."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on PATH (Debian: apt-get install chromium)"
)
# What probes may call: to wait for what the browser draws in its own time (a page that never does
# it is looked at as it is then), to read texts, to see whether a chart with its table is drawn, and
# to move the mouse to its middle.
HELPERS = """const until = async (holds) => {
  for (let left = 200; left > 0 && !holds(); left--) {
    await new Promise((done) => setTimeout(done, 50));
  }
};
const text = (of, within = document) =>
  [...within.querySelectorAll(of)].map((one) => one.textContent.trim());
const isDrawn = (chart) => chart.querySelector(".u-over") && chart.querySelector("details td");
const pointAt = (chart) => {
  const over = chart.querySelector(".u-over"), box = over.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true };
  over.dispatchEvent(new MouseEvent("mousemove", at));
};"""
LOOKS = """() => ({ width: document.documentElement.scrollWidth,
  paper: getComputedStyle(document.body).backgroundColor,
  ink: getComputedStyle(document.body).color })"""
# References to other files or hosts.
LOADS = re.compile(r"https?://|@import|<link|<img|<iframe|\ssrc=|fetch\(|XMLHttpRequest")


@dataclass(frozen=True)
class Seen:
    """The probe's result, what the page wrote to Chromium's console, its width, the colour of its
    background, and that of its text."""

    result: dict[str, Any]
    console: list[str]
    width: int
    paper: str
    ink: str


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium, without a window; close it at the end."""
    assert CHROMIUM is not None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def look(
    page: str, probe: str, tmp_path: Path, width: int, scheme: Literal["light", "dark"] = "light"
) -> Seen:
    """Load the page at a width of that many CSS pixels, and run the probe in it: an async
    function that may call the HELPERS."""
    file = tmp_path / "page.html"
    file.write_text(page)
    console: list[str] = []
    with chromium() as browser:
        opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        opened.on("console", lambda message: console.append(message.text))
        opened.on("pageerror", lambda error: console.append(str(error)))
        opened.goto(file.as_uri())
        result = opened.evaluate(f"async () => {{ {HELPERS} return ({probe})(); }}")
        return Seen(result, console, **opened.evaluate(LOOKS))


def loaded_by(page: str) -> list[str]:
    """Return the references to other files and hosts, without the comments of licences."""
    return LOADS.findall(re.sub(r"/\*!.*?\*/", "", page))


def contrast(one: str, other: str) -> float:
    """Return WCAG 2's contrast ratio of two `rgb(r, g, b)`."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
