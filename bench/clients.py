"""Measures the lateness of a running load generator, with and without misbehaving clients."""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loadgen.stats import LATENESS_WINDOW_NS

CROWD = Path(__file__).with_name("crowd.py")
KINDS = ("events", "purchases")
ASK_EVERY_S = 0.05
WINDOW_S = LATENESS_WINDOW_NS / 1e9


class Polite:
    """A client that sends a command and waits for the answer."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=120)
        self._lines = self._socket.makefile("r", newline="\n")
        self._lines.readline()

    def ask(self, line: str) -> str:
        self._socket.sendall(f"{line}\n".encode())
        return self._lines.readline()

    def window(self, window_s: float) -> tuple[dict[str, Any], list[float]]:
        """Send small requests for `window_s`; return the statistics at the end and the response
        times in ms."""
        took_ms, until_s = [], time.monotonic() + window_s
        while time.monotonic() < until_s:
            asked_s = time.monotonic()
            self.ask("get events_per_second")
            took_ms.append((time.monotonic() - asked_s) * 1000)
            time.sleep(ASK_EVERY_S)
        stats: dict[str, Any] = json.loads(self.ask("stats"))
        return stats, took_ms


def measure(
    events: int, purchases: int, seconds: float, window_s: float = WINDOW_S
) -> list[dict[str, Any]]:
    """Measure lateness and response times without misbehaving clients, then with them.

    `events` and `purchases` are rates per second; `seconds` is the duration of each half. The
    generator reports the lateness of the last WINDOW_S, which a shorter window overlaps.
    """
    host, port = os.environ["LOADGEN_ENDPOINT"].rsplit(":", 1)
    polite = Polite(host, int(port))
    polite.ask(f"set events_per_second {events}")
    polite.ask(f"set purchases_per_second {purchases}")
    time.sleep(2 * window_s)  # warm-up
    windows = max(1, round(seconds / window_s))
    alone = [polite.window(window_s) for _ in range(windows)]
    with _crowd(host, port):
        time.sleep(window_s)  # so that the crowd is present in all of the first window
        crowded = [polite.window(window_s) for _ in range(windows)]
    return [_summary("none", alone), _summary("150, and a line of 10 MB a second", crowded)]


@contextmanager
def _crowd(host: str, port: str) -> Iterator[None]:
    command = [sys.executable, str(CROWD), host, port]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
        if crowd.stdout is None or crowd.stdin is None or not crowd.stdout.readline():
            sys.exit("bench/crowd.py did not start; see its output above")
        yield
        if crowd.poll() is not None:
            sys.exit("bench/crowd.py ended early; see its output above")
        crowd.stdin.close()


def _summary(clients: str, windows: list[tuple[dict[str, Any], list[float]]]) -> dict[str, Any]:
    """Return medians over the windows, and the worst values."""
    late = {
        kind: {
            "p50": statistics.median(stats[kind]["lateness_ms"]["p50"] for stats, _ in windows),
            "p99": statistics.median(stats[kind]["lateness_ms"]["p99"] for stats, _ in windows),
            "worst_p99": max(stats[kind]["lateness_ms"]["p99"] for stats, _ in windows),
            "max": max(stats[kind]["lateness_ms"]["max"] for stats, _ in windows),
        }
        for kind in KINDS
    }
    took_ms = sorted(ms for _, of_one in windows for ms in of_one)
    answers = {"p50": statistics.median(took_ms), "max": took_ms[-1]}
    return {"clients": clients, "lateness_ms": late, "answers_ms": answers}
