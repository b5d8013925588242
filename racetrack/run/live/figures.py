"""Figures of a running session as of now: rates, lag of each view, CPU, memory, noise, the verdict
on each engine, and long garbage collections."""

import os
import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from racetrack.analysis import noise, raw, views
from racetrack.analysis.curves import RecentCurves, deleted_unread
from racetrack.analysis.verdict import judge, look, looks_ms
from racetrack.config import Settings
from racetrack.live.series import COUNT, series_id
from racetrack.metrics import (
    BACKLOG,
    BROWSER_CPU,
    COUNTED,
    CPU,
    FOREIGN_CPU,
    HARNESS_CPU,
    LAG,
    MACHINE_BUSY,
    OFFERED,
    PUBLISHED,
    READ_TIME,
    RSS,
    STEAL,
)
from racetrack.probes.noise import NoiseProbe
from racetrack.probes.usage import Listed, Usage, UsageProbe, cpu_s_of
from racetrack.probes.views import ViewsProbe
from racetrack.results.figures import Verdict, VerdictKind
from racetrack.run.engine_run import EngineRun
from racetrack.run.session import Session
from racetrack.workloads.contract import TracedView, workload_in

Values = dict[str, float | None]
BROWSERS = ("chrome", "chromium", "firefox", "Web Content", "Isolated Web", "WebKit")
PROC = Path("/proc")


class BrowserMeter:
    """CPU time of web browsers on this machine, with which the live page shows how much CPU time
    viewing it costs."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc, self._pids = proc, Listed(self._list)
        self._known: list[int] | None = None
        self._before: tuple[float, float] | None = None

    def pct(self) -> float | None:
        """Return the CPU use since the last call, percent of a core; None at the first call and
        when a browser has started or ended."""
        known, pids = self._known, self._pids()
        now, before = (time.monotonic(), cpu_s_of(pids)), self._before
        self._known, self._before = pids, now
        if pids != known or not before or now[0] <= before[0]:
            return None
        return max(0.0, 100 * (now[1] - before[1]) / (now[0] - before[0]))

    def _list(self) -> list[int]:
        """Return the browsers' processes."""
        names = filter(str.isdigit, os.listdir(self._proc))  # noqa: PTH208  # faster than Paths
        return sorted(int(pid) for pid in names if self._is_browser(pid))

    def _is_browser(self, pid: str) -> bool:
        try:
            return (self._proc / pid / "comm").read_text().startswith(BROWSERS)
        except OSError:
            return False


class Figures:
    """Measures the figures of a session, by the ids of their series."""

    def __init__(self, session: Session, recent: RecentCurves, settings: Settings) -> None:
        self._session, self._recent = session, recent
        self._traced = workload_in(settings).with_tracer_rows
        self._partitions = settings.events_partitions
        self._browsers = BrowserMeter()
        self._used: tuple[int, Mapping[str, Usage]] = (0, {})
        self._noise: Mapping[str, str] = {}
        self._answers_due_s = 0.0

    def fast(self, now_ms: int) -> Values:
        """Return the figures that change several times a second: rates, lag and backlog."""
        recent = self._recent
        values: Values = {
            OFFERED.key: recent.rate_per_s("due"),
            PUBLISHED.key: recent.rate_per_s("published"),
        }
        for run in self._session.runs:
            name = run.engine.name
            values[series_id(COUNTED, name)] = recent.rate_per_s("processed", name)
            values[series_id(LAG, name, COUNT)] = recent.lag_ms(name, now_ms)
            values[series_id(BACKLOG, name)] = recent.backlog(name)
            if not recent.has_deleted_unread(name):
                values |= self._view_lags(run, now_ms)
        return values

    def slow(self) -> Values:
        """Return the figures that are measured once a second, if there are new ones: CPU, memory
        and noise."""
        return {**self._usage(), **self._noise_figures(), **self._answer_times()}

    def _answer_times(self) -> Values:
        """Return, once a second, the median time of each engine's answers to view reads since the
        last call. An engine without new answers is left out; if its views are no longer read, its
        time is None."""
        if time.monotonic() < self._answers_due_s:
            return {}
        self._answers_due_s = time.monotonic() + 1.0
        values: Values = {}
        for run in self._session.runs:
            times = [ms for reader in run.readers for ms in reader.new_answer_times()]
            if times or not any(reader.per_s for reader in run.readers):
                median_ms = statistics.median(times) if times else None
                values[series_id(READ_TIME, run.engine.name)] = median_ms
        return values

    def _view_lags(self, run: EngineRun, now_ms: int) -> Values:
        probe = next((other for other in run.probes if isinstance(other, ViewsProbe)), None)
        arrivals = self._session.arrivals
        tracer = (arrivals.counts if arrivals else {}).get("tracer_events")
        if not (probe and tracer and tracer["newest"][0] and tracer["rate"]):
            return {}
        values = probe.newest.copy()
        return {
            series_id(LAG, run.engine.name, view.name): max(
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
        values: Values = {series_id(RSS, name): used.rss_gib for name, used in now.items()}
        for name, used in now.items():
            if name in before:
                grown_s = used.cpu_s - before[name].cpu_s
                pct = 100_000 * grown_s / (now_ms - before_ms)
                values[series_id(CPU, name)] = round(max(0.0, pct), 1)
        return values

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
            STEAL.key: figures.steal_pct,
            FOREIGN_CPU.key: foreign_pct,
            BROWSER_CPU.key: browser_pct,
            HARNESS_CPU.key: figures.harness_cpu_pct,
            MACHINE_BUSY.key: figures.machine_busy_pct,
        }


def oldest_missing_ms(
    view: TracedView,
    values: Mapping[tuple[str, int], int],
    tracer: Mapping[str, Any],
    partitions: int,
) -> float:
    """Return the due time of the oldest tracer event that is missing in a view. `tracer` are the
    generator's counts of tracer events, which are evenly spaced in time. If the view contains all
    of them, return the due time of the next tracer event, which is in the future."""
    newest, newest_ms = tracer["newest"]
    gap_ms = 1000 / float(tracer["rate"])
    first_ms = newest_ms - (newest - 1) * gap_ms
    contained = {
        part: _tracers_in(view, values, part, partitions, first_ms, gap_ms)
        for part in range(partitions)
    }
    oldest = min(
        views.number_of(view.parity, nth, part, partitions) for part, nth in contained.items()
    )
    return float(first_ms + oldest * gap_ms)


def _tracers_in(
    view: TracedView,
    values: Mapping[tuple[str, int], int],
    partition: int,
    partitions: int,
    first_ms: float,
    gap_ms: float,
) -> int:
    """Return the number of a partition's tracer events that a view contains."""
    value = values.get((view.name, partition), 0)
    if not (view.is_time and value):
        return value
    number = round((value - first_ms) / gap_ms)
    pair = round((number // 2 - partition) / partitions)
    return max(0, (2 * pair + number % 2 if view.parity is None else pair) + 1)


# Once the verdict is decided, it is judged again at this interval, over the last AGAIN_OVER_MS of
# the segment.
AGAIN_EVERY_MS, AGAIN_OVER_MS = 15_000, 60_000
FIRST_LOOK_MS = 10_000  # time from the beginning of a segment to its first verdict
LATE_ROWS_MS = 1_000  # rows may be written this late
NONE = "none"


@dataclass(frozen=True)
class CurrentVerdict:
    """A verdict as the live page shows it. `kind` is a `VerdictKind`, or `none` if there is no
    verdict."""

    kind: str
    text: str


class VerdictWatch:
    """Judges whether one engine keeps up: at the times of the sequential test, and every 15 s once
    that test has decided."""

    def __init__(self, engine: str, recent: RecentCurves) -> None:
        self._engine, self._recent = engine, recent
        self._from_ms, self._judged_ms = 0, 0.0
        self._requested_per_s: float | None = None
        self.now = CurrentVerdict(NONE, "There is no load yet.")

    def begin(self, from_ms: int, requested_per_s: float | None, why_not: str = "") -> None:
        """Begin a segment, a period of unchanged load. If the rate is not constant, there is no
        verdict, and the page shows `why_not` instead."""
        self._from_ms, self._judged_ms, self._requested_per_s = from_ms, 0.0, requested_per_s
        if why_not or not requested_per_s:
            self.now = CurrentVerdict(NONE, why_not or "The rate is 0.")
        else:
            self.now = CurrentVerdict(str(VerdictKind.UNDECIDED), "The verdict began anew.")

    def update(self, now_ms: int) -> None:
        """Judge again, if it is time."""
        if self.now.kind == NONE:
            return
        at_ms = self._due_ms(now_ms - LATE_ROWS_MS)
        if at_ms is None or not (curves := self._recent.curves(self._engine)):
            return
        self._judged_ms = at_ms
        verdict: Verdict
        if self.now.kind == VerdictKind.UNDECIDED:
            verdict = look(curves, self._from_ms, at_ms, self._requested_per_s)
        else:
            from_ms = max(self._from_ms, at_ms - AGAIN_OVER_MS)
            verdict = judge(curves, from_ms, at_ms, self._requested_per_s)
            if verdict.kind is VerdictKind.UNDECIDED and not deleted_unread(curves):
                return
        self.now = CurrentVerdict(str(verdict.kind), verdict.reason)

    def _due_ms(self, until_ms: float) -> float | None:
        """Return the time for which a verdict is due; None if none is due yet."""
        if self.now.kind != VerdictKind.UNDECIDED:
            return until_ms if until_ms - self._judged_ms >= AGAIN_EVERY_MS else None
        first_ms = self._from_ms + FIRST_LOOK_MS
        due = [at for at in looks_ms(self._from_ms, first_ms, until_ms) if at > self._judged_ms]
        return due[-1] if due else None


LONG_MS = 100.0  # shorter pauses hardly show in a lag that is sampled ten times a second
# Collections within this time are reported as one event, since a full heap causes several a second.
ONE_EVENT_PER_S = 10.0
_PAUSE = re.compile(
    rb"\[\d+ms\]\[gc *\] GC\(\d+\) (Pause [^\n]*?) (\d+[KMG])->(\d+[KMG])\(\d+[KMG]\) ([\d.]+)ms$",
    re.MULTILINE,
)


@dataclass
class _Log:
    """A service's log, how much of it has been read, and the garbage-collection pauses in it that
    have not been reported yet."""

    path: Path
    read_bytes: int
    pauses: list[tuple[str, str, str, float]] = field(default_factory=list)
    event_s: float = -ONE_EVENT_PER_S

    def read(self) -> None:
        """Read the lines that are new."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.read_bytes)
                new = file.read()
        except OSError:  # the service is being restarted
            return
        complete = new[: new.rfind(b"\n") + 1]
        self.read_bytes += len(complete)
        for what, before, after, took_ms in _PAUSE.findall(complete):
            if float(took_ms) >= LONG_MS:
                kind = (what.decode(), before.decode(), after.decode())
                self.pauses.append((*kind, float(took_ms)))


class CollectionWatch:
    """Reports long garbage collections from the logs of services, beginning at the current ends of
    the logs."""

    def __init__(self, logs: Mapping[str, Path]) -> None:
        self._logs = {
            service: _Log(path, path.stat().st_size if path.is_file() else 0)
            for service, path in logs.items()
        }

    def new(self, now_s: float) -> list[tuple[str, str]]:
        """Return a pair of service and text for each service with new garbage collections of
        LONG_MS or more. `now_s` is a monotonic time."""
        pauses = []
        for service, log in self._logs.items():
            log.read()
            if log.pauses and now_s - log.event_s >= ONE_EVENT_PER_S:
                pauses.append((service, _text(service, log.pauses)))
                log.pauses, log.event_s = [], now_s
        return pauses


def _text(service: str, pauses: list[tuple[str, str, str, float]]) -> str:
    what, before, after, longest_ms = max(pauses, key=lambda pause: pause[3])
    kind = what.removeprefix("Pause ")
    text = f"garbage collection stopped {service} for {longest_ms / 1000:.2f} s"
    if len(pauses) > 1:
        all_s = sum(pause[3] for pause in pauses) / 1000
        text = f"{len(pauses)} garbage collections stopped {service} for {all_s:.2f} s"
        kind = f"longest: {kind}"
    return f"{text} ({kind}, {before} → {after})"
