"""Current figures of a running session: rates, lag of each view, CPU, memory and noise."""

import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from racetrack.analysis import noise, raw
from racetrack.analysis.recent import RecentCurves
from racetrack.analysis.views import number_of
from racetrack.config import Settings
from racetrack.probes.noise import NoiseProbe
from racetrack.probes.usage import Usage, UsageProbe, cpu_s_of
from racetrack.probes.views import ViewsProbe
from racetrack.run.engine_run import EngineRun
from racetrack.run.session import Session
from racetrack.workloads.contract import TracedView, find_workload

Values = dict[str, float | None]
BROWSERS = ("chrome", "chromium", "firefox", "Web Content", "Isolated Web", "WebKit")
LIST_BROWSERS_EVERY_S = 5.0
PROC = Path("/proc")


class BrowserMeter:
    """CPU time of web browsers on this machine, so that a page can show what it costs to look."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc, self._pids = proc, list[int]()
        self._listed_s = -LIST_BROWSERS_EVERY_S
        self._before: tuple[float, float] | None = None

    def pct(self) -> float | None:
        """Return the CPU use since the last call, percent of a core; None at the first call and
        when a browser has started or ended."""
        now_s = time.monotonic()
        changed = now_s - self._listed_s >= LIST_BROWSERS_EVERY_S and self._list(now_s)
        now, before = (now_s, cpu_s_of(self._pids)), self._before
        self._before = now
        if changed or not before or now[0] <= before[0]:
            return None
        return max(0.0, 100 * (now[1] - before[1]) / (now[0] - before[0]))

    def _list(self, now_s: float) -> bool:
        """List the browsers' processes; return whether they have changed."""
        self._listed_s, before = now_s, self._pids
        names = filter(str.isdigit, os.listdir(self._proc))  # noqa: PTH208  # faster than Paths
        self._pids = sorted(int(pid) for pid in names if self._is_browser(pid))
        return self._pids != before

    def _is_browser(self, pid: str) -> bool:
        try:
            return (self._proc / pid / "comm").read_text().startswith(BROWSERS)
        except OSError:
            return False


class Figures:
    """Measures the figures of a session. The ids of the series are those of the page."""

    def __init__(self, session: Session, recent: RecentCurves, settings: Settings) -> None:
        self._session, self._recent = session, recent
        self._traced = find_workload(settings.workload).traced_views
        self._partitions = settings.pageviews_partitions
        self._browsers = BrowserMeter()
        self._used: tuple[int, Mapping[str, Usage]] = (0, {})
        self._noise: Mapping[str, str] = {}
        self._answers_due_s = 0.0

    def fast(self, now_ms: int) -> Values:
        """Return the figures that change several times a second: rates, lag and backlog."""
        recent = self._recent
        found: Values = {
            "offered_per_s": recent.rate_per_s("due"),
            "published_per_s": recent.rate_per_s("published"),
        }
        for run in self._session.runs:
            name = run.engine.name
            found[f"counted_per_s/{name}"] = recent.rate_per_s("processed", name)
            found[f"lag_ms/{name}/count"] = recent.lag_ms(name, now_ms)
            found[f"backlog/{name}"] = recent.backlog(name)
            found |= self._view_lags(run, now_ms)
        return found

    def slow(self) -> Values:
        """Return the figures that are measured once a second, if there are new ones: CPU, memory
        and noise."""
        return {**self._usage(), **self._noise_figures(), **self._answer_times()}

    def _answer_times(self) -> Values:
        """Return the median time of the answers since the last call, once a second; nothing for an
        engine that is read less often."""
        if time.monotonic() < self._answers_due_s:
            return {}
        self._answers_due_s = time.monotonic() + 1.0
        found: Values = {}
        for run in self._session.runs:
            times = [ms for reader in run.readers for ms in reader.new_answer_times()]
            if times or not any(reader.per_s for reader in run.readers):
                median_ms = statistics.median(times) if times else None
                found[f"read_ms/{run.engine.name}"] = median_ms
        return found

    def _view_lags(self, run: EngineRun, now_ms: int) -> Values:
        probe = next((each for each in run.probes if isinstance(each, ViewsProbe)), None)
        arrivals = self._session.arrivals
        tracer = (arrivals.counts if arrivals else {}).get("tracer_events")
        if not (probe and tracer and tracer["newest"][0] and tracer["rate"]):
            return {}
        values = probe.newest.copy()
        return {
            f"lag_ms/{run.engine.name}/{view.name}": max(
                0.0, now_ms - oldest_missing_ms(view, values, tracer, self._partitions)
            )
            for view in self._traced
            if any(name == view.name for name, _ in values)
        }

    def _usage(self) -> Values:
        probe = self._session.probe(UsageProbe)
        if not probe or probe.newest[0] == self._used[0]:
            return {}
        (before_ms, before), (now_ms, now) = self._used, probe.newest
        self._used = probe.newest
        found: Values = {f"rss_gib/{name}": used.rss_gib for name, used in now.items()}
        for name, used in now.items():
            if name in before:
                grown_s = used.cpu_s - before[name].cpu_s
                pct = 100_000 * grown_s / (now_ms - before_ms)
                found[f"cpu_pct/{name}"] = round(max(0.0, pct), 1)
        return found

    def _noise_figures(self) -> Values:
        probe = self._session.probe(NoiseProbe)
        if not probe or not probe.newest or probe.newest == self._noise:
            return {}
        before, self._noise = self._noise, probe.newest
        if not before:
            return {}
        rows = [raw.noise_row(row) for row in (before, self._noise)]
        figures = noise.over(rows, rows[0].at_ms, rows[1].at_ms)
        if not figures:
            return {}
        browser_pct, foreign_pct = self._browsers.pct(), figures.foreign_cpu_pct
        if foreign_pct is not None:
            foreign_pct = max(0.0, foreign_pct - (browser_pct or 0.0))
        return {
            "steal_pct": figures.steal_pct,
            "foreign_cpu_pct": foreign_pct,
            "browser_cpu_pct": browser_pct,
            "harness_cpu_pct": figures.harness_cpu_pct,
            "busy_pct": figures.machine_busy_pct,
        }


def oldest_missing_ms(
    view: TracedView,
    values: Mapping[tuple[str, int], int],
    tracer: Mapping[str, Any],
    partitions: int,
) -> float:
    """Return the due time of the oldest tracer event that is missing in a view. `tracer` are the
    generator's counts of tracer events, which are evenly spaced in time. If none is missing, the
    time is that of the next one, which is in the future."""
    newest, newest_ms = tracer["newest"]
    gap_ms = 1000 / float(tracer["rate"])
    first_ms = newest_ms - (newest - 1) * gap_ms
    contained = {
        part: _value_of(view, values, part, partitions, first_ms, gap_ms)
        for part in range(partitions)
    }
    oldest = min(number_of(view.parity, nth, part, partitions) for part, nth in contained.items())
    return float(first_ms + oldest * gap_ms)


def _value_of(
    view: TracedView,
    values: Mapping[tuple[str, int], int],
    partition: int,
    partitions: int,
    first_ms: float,
    gap_ms: float,
) -> int:
    """Return how many tracer events of a partition a view contains."""
    value = values.get((view.name, partition), 0)
    if not (view.is_time and value):
        return value
    number = round((value - first_ms) / gap_ms)
    pair = round((number // 2 - partition) / partitions)
    return max(0, (2 * pair + number % 2 if view.parity is None else pair) + 1)
