"""Pages in a real browser: `look` loads one in Chromium and returns the result of a probe."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on PATH (Debian: apt-get install chromium)"
)
# Chromium's window is at least 500 pixels wide, but a frame may be narrower. `probe` is an async
# function of the page's document and window; its result is stored in the page.
FRAME = """<!doctype html><meta name="color-scheme" content="light dark">
<iframe id="page" width="{width}" height="900" style="border:0" src="{page}"></iframe>
<script>
const probe = {probe};
document.getElementById("page").addEventListener("load", async () => {{
  const inner = document.getElementById("page").contentDocument;
  const seen = document.createElement("script");
  seen.type = "application/json";
  seen.id = "seen";
  try {{
    seen.textContent = JSON.stringify(await probe(inner, inner.defaultView));
  }} catch (error) {{
    seen.textContent = JSON.stringify({{ error: String(error.stack) }});
  }}
  document.body.append(seen);
}});
</script>"""
LIGHT = "--blink-settings=preferredColorScheme=1"
DARK = "--blink-settings=preferredColorScheme=0"


@dataclass(frozen=True)
class Seen:
    """The probe's result, and what the page wrote to Chromium's console."""

    result: dict[str, Any]
    console: list[str]


def look(page: str, probe: str, tmp_path: Path, width: int, *options: str) -> Seen:
    """Load the page in a frame of that many CSS pixels, and run the probe in it."""
    assert CHROMIUM is not None
    page_file, frame = tmp_path / "page.html", tmp_path / "frame.html"
    page_file.write_text(page)
    frame.write_text(FRAME.format(width=width, page=page_file.as_uri(), probe=probe))
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--allow-file-access-from-files",  # the frame reads the page
            "--disable-background-networking",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            *options,
            frame.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'<script type="application/json" id="seen">(.*?)</script>', done.stdout)
    assert found, f"the probe saw nothing: {done.stderr[-2000:]}"
    record = json.loads(html.unescape(found[1]))
    assert "error" not in record, record["error"]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Seen(record, console)


def contrast(one: str, other: str) -> float:
    """Return WCAG 2's contrast ratio of two `rgb(r, g, b)`."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
