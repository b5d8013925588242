"""Records the pictures of a live session: a moving one for README.md (`live.webp`), and the last
second of it as a still for live.md (`live.png`).

    PYTHONPATH=. python docs/record_live.py [--engines dh pg] [--seconds 60] [--out docs/live.webp]

It starts a real session and waits a minute for the engines to warm up. Then it takes a screenshot
every second while it raises the rate with the slider, kills the second engine and restarts it.
Needs Chromium (Debian: `apt-get install chromium`) and the packages of the tests. Run it on a
machine without other load. Exit code 1: the picture is larger than 1 MB, or the session failed.
"""

import argparse
import io
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

REPO = Path(__file__).resolve().parents[1]
SIZE = ViewportSize(width=1360, height=1000)
SCALE = 0.75  # of the moving picture; the still has the full size
MOST_BYTES = 1_000_000
QUALITIES = (70, 55, 40, 25, 12)
READY_WITHIN_MS = 180_000
WARM_UP_MS = 60_000  # engines in a JVM are slow at first


def main() -> int:
    """Record the session; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engines", nargs=2, default=["dh", "pg"], help="default: dh pg")
    parser.add_argument("--seconds", type=int, default=60, help="length; default: 60")
    parser.add_argument("--rate", default="2k", help="first rate; default: 2k")
    parser.add_argument("--out", type=Path, default=REPO / "docs" / "live.webp")
    arguments = parser.parse_args()
    command = ["./race", "live", *arguments.engines, "--rate", arguments.rate, "--port", "0"]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True) as session:
        try:
            frames = record(address_in(session), arguments.engines[1], arguments.seconds)
        finally:
            session.send_signal(signal.SIGINT)
            session.communicate()
    if session.returncode:
        print(f"The session ended with exit code {session.returncode}.", file=sys.stderr)
        return 1
    frames[-1].save(arguments.out.with_suffix(".png"), optimize=True)
    return save([smaller(frame) for frame in frames], arguments.out)


def address_in(session: "subprocess.Popen[str]") -> str:
    """Return the address that the session prints."""
    for line in session.stdout or ():
        if found := re.search(r"http://\S+#token=\S+", line):
            return found[0]
    raise SystemExit("The session ended before it printed an address.")


def record(url: str, killed: str, seconds: int) -> list[Image.Image]:
    """Return a screenshot for each second of the session, in which the rate is raised twice and an
    engine is killed and restarted."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(url)
        page.wait_for_selector('#slider[aria-disabled="false"]', timeout=READY_WITHIN_MS)
        page.keyboard.press("1")  # show one minute
        page.wait_for_timeout(WARM_UP_MS)
        plan = [
            (0.10, lambda: raise_rate(page, 4)),
            (0.30, lambda: raise_rate(page, 4)),
            (0.50, lambda: page.click(f'[data-control="kill/{killed}"]')),
            (0.65, lambda: page.click(f'[data-control="restart/{killed}"]')),
        ]
        frames = take(page, seconds, [(share * seconds, act) for share, act in plan])
        browser.close()
    return frames


def raise_rate(page: Page, steps: int) -> None:
    """Move the slider to the right."""
    slider = page.locator("#slider")
    slider.focus()
    for _ in range(steps):
        slider.press("ArrowRight")


def take(
    page: Page, seconds: int, plan: Sequence[tuple[float, Callable[[], None]]]
) -> list[Image.Image]:
    """Take a screenshot every second, and carry out the plan's actions at their seconds."""
    began_s, frames, left = time.monotonic(), [], list(plan)
    for second in range(seconds):
        page.wait_for_timeout(max(0.0, 1000 * (began_s + second - time.monotonic())))
        while left and left[0][0] <= second:
            left.pop(0)[1]()
        frames.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    return frames


def smaller(frame: Image.Image) -> Image.Image:
    """Return a frame in the size of the moving picture."""
    return frame.resize((round(SCALE * frame.width), round(SCALE * frame.height)))


def save(frames: list[Image.Image], out: Path) -> int:
    """Write the frames, one a second, with the best quality that keeps the file small."""
    for quality in QUALITIES:
        frames[0].save(
            out,
            save_all=True,
            append_images=frames[1:],
            duration=1000,
            loop=0,
            quality=quality,
            method=4,
            minimize_size=True,
        )
        if (size := out.stat().st_size) < MOST_BYTES:
            print(f"{out}: {len(frames)} s, {size / 1000:.0f} kB, quality {quality}")
            return 0
    print(f"{out} has {size:,} bytes, more than {MOST_BYTES:,}.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
