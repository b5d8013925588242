"""The page in a real browser: no error, no scrolling sideways on a phone, values under the pointer,
both themes. Needs Chromium (Debian: `apt-get install chromium`)."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from racetrack.report.collect import collect, tables
from racetrack.report.write import write
from racetrack.results.reference import published
from tests.report.folders import RunSpec, run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium on PATH (Debian: apt-get install chromium)"
    ),
]
# Chromium's own window is never narrower than 500 pixels; a frame can be. The probe opens all,
# points at the middle of the first chart, and leaves what it saw in the page.
PROBE = """<!doctype html><meta name="color-scheme" content="light dark">
<iframe id="page" width="{width}" height="900" style="border:0" srcdoc="{page}"></iframe>
<script>
document.getElementById("page").addEventListener("load", () => {{
  const inner = document.getElementById("page").contentDocument, view = inner.defaultView;
  inner.querySelectorAll("details").forEach((part) => part.open = true);
  const charts = [...inner.querySelectorAll("[data-chart]")].map((chart) => {{
    const svg = chart.querySelector("svg"), box = svg.getBoundingClientRect();
    const {{ lines, units }} = JSON.parse(chart.querySelector("script").textContent);
    const line = lines[0];
    const points = line.points.split(";");
    const point = points[Math.floor(points.length / 2)].split("|");
    const clientX = box.left + point[0] * box.width / svg.viewBox.baseVal.width;
    const tip = chart.querySelector(".tip"), plot = chart.querySelector(".plot");
    const before = tip.hidden;
    plot.dispatchEvent(new view.PointerEvent("pointermove", {{ clientX, bubbles: true }}));
    const shown = !tip.hidden, told = tip.textContent, right = tip.getBoundingClientRect().right;
    plot.dispatchEvent(new view.PointerEvent("pointerleave", {{ clientX }}));
    const expected = [point[1] + units[0], point[2] + units[1]];
    return {{ before, shown, told, right, expected, name: line.name,
      hiddenAgain: tip.hidden, width: box.width }};
  }});
  const seen = document.createElement("script");
  seen.type = "application/json";
  seen.id = "seen";
  seen.textContent = JSON.stringify({{ charts, width: inner.documentElement.scrollWidth,
    paper: view.getComputedStyle(inner.body).backgroundColor,
    ink: view.getComputedStyle(inner.body).color,
    line: [...inner.querySelectorAll("svg path")].map((path) => view.getComputedStyle(path)).find(
      (look) => look.strokeWidth === "1.3px").stroke }});
  document.body.append(seen);
}});
</script>"""


@dataclass(frozen=True)
class Seen:
    """What the probe saw, and what Chromium printed of the page's console."""

    told: dict[str, Any]
    console: list[str]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two engines, a long label, two rates."""
    logs = tmp_path_factory.mktemp("logs")
    for spec in (
        RunSpec(rate=100),
        RunSpec(),
        RunSpec(engine="swift"),
        RunSpec(engine="swift", leak=0.05),
    ):
        run(logs, spec)
    run(logs, RunSpec(settings={"UPDATES_PER_SECOND": "250"}))
    collection = collect(sorted(logs.iterdir()))
    write(logs / "out", collection, tables(collection.runs), published())
    return (logs / "out" / "report.html").read_text()


def look(page: str, tmp_path: Path, width: int, *options: str) -> Seen:
    """Load the page in a frame of that many CSS pixels."""
    assert CHROMIUM is not None
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(width=width, page=html.escape(page)))
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            *options,
            probe.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'<script type="application/json" id="seen">(.*?)</script>', done.stdout)
    assert found, f"the probe saw nothing: {done.stderr[-2000:]}"
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Seen(json.loads(html.unescape(found[1])), console)


def test_a_phone_needs_no_sideways_scrolling_and_hover_tells_values(
    page: str, tmp_path: Path
) -> None:
    seen = look(page, tmp_path, 390)
    assert seen.console == []
    assert seen.told["width"] <= 390
    charts = seen.told["charts"]
    assert len(charts) == page.count("data-chart>")
    for chart in charts:
        assert (chart["before"], chart["shown"], chart["hiddenAgain"]) == (True, True, True)
        assert all(value in chart["told"] for value in (*chart["expected"], chart["name"]))
        assert 300 < chart["width"] <= 390
        assert chart["right"] <= 390


def test_light_and_dark_are_both_drawn(page: str, tmp_path: Path) -> None:
    (tmp_path / "light").mkdir()
    (tmp_path / "dark").mkdir()
    light = look(page, tmp_path / "light", 1200, "--blink-settings=preferredColorScheme=1").told
    dark = look(page, tmp_path / "dark", 1200, "--blink-settings=preferredColorScheme=0").told
    assert light["paper"] == "rgb(255, 255, 255)"
    for name in ("paper", "ink", "line"):
        assert light[name] != dark[name]
    for seen in (light, dark):
        for name in ("ink", "line"):
            assert contrast(seen[name], seen["paper"]) >= (4.5 if name == "ink" else 3)


def contrast(one: str, other: str) -> float:
    """WCAG 2's contrast ratio of two `rgb(r, g, b)`."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
