"""Kinds of load that a capacity search can raise: pageviews, or inserts that arrive by CDC."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from racetrack.analysis import capacity, curves, raw, views
from racetrack.analysis.capacity import Work
from racetrack.analysis.curves import Curves, counted, throughput
from racetrack.config import Settings
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError, UsageError
from racetrack.results.run import Window
from racetrack.results.search import PAGEVIEWS
from racetrack.run.search import LoadSample
from racetrack.run.session import Session
from racetrack.workloads.contract import TracedView, Workload, find_workload

# A search with inserts needs at least this many tracer events per second and partition: they show
# how many inserts a view contains.
TRACERS_PER_PARTITION = 2
# Fraction of the machine's memory that the broker may use for the main topic during a search.
KEPT_OF_MEMORY = 1 / 6


@dataclass(frozen=True)
class MeasuredWork:
    """Throughput at saturation. `view` is the name of the slowest traced view; None if the engine's
    count was slowest. `backlog_by_stage` is the share of the backlog that waits before each stage
    of the CDC path."""

    work: Work
    view: str | None = None
    backlog_by_stage: Mapping[str, float] = field(default_factory=dict)


class Load(ABC):
    """A kind of load on a session."""

    of: str  # name of the load in the generator
    start_per_s: int  # first rate of a search
    low_per_s: int  # a rate well below the capacity of any engine

    def __init__(
        self, session: Session, folder: Path, workload: Workload, settings: Settings
    ) -> None:
        self.session, self._folder = session, folder
        self._workload, self._settings = workload, settings

    def offer(self, per_s: int) -> None:
        """Set the rate without printing it; for rates that change every second."""
        self.session.offer(per_s, self.of)

    def set_rate(self, per_s: int) -> None:
        """Set the rate, print it, and check that the load arrives.

        Raises:
            RacetrackError: the load does not arrive.
        """
        self.session.set_rate(per_s, self.of)

    @abstractmethod
    def sample(self) -> LoadSample:
        """Return the current counters of due and counted events, and the CPU time used so far."""

    @abstractmethod
    def lags(self) -> list[Curves]:
        """Return the curves from which a rate trial computes the lag: those of the engine's count
        and of the traced views. The highest lag counts."""

    def work(self, window: Window, batch_s: float) -> MeasuredWork:
        """Return the throughput in a window, divided into batches of about `batch_s` seconds.

        Raises:
            RacetrackError: the window has fewer than two updates.
        """
        try:
            return self._work(window, batch_s)
        except ValueError as error:
            raise RacetrackError(f"The engine's capacity is unknown: {error}.") from error

    @abstractmethod
    def _work(self, window: Window, batch_s: float) -> MeasuredWork:
        """Do the same as `work`, but raise ValueError if there are too few updates."""

    def cpu_s_per_million(self, window: Window, made: MeasuredWork) -> dict[str, float]:
        """Return the CPU seconds of each service per million events processed in a window."""
        usage, counted = raw.usage(self._folder), made.work.per_s * window.seconds
        return capacity.cpu_s_per_million(usage, window.start_ms, window.end_ms, counted)

    @abstractmethod
    def handed_over_per_s(self, window: Window) -> float:
        """Return the rate that the generator reached in a window."""

    @abstractmethod
    def counted_by(self, at_ms: int) -> int:
        """Return the number of events that the engine had counted at `at_ms`."""


class Pageviews(Load):
    """Load of events in the main topic, measured by the engine's count and by traced views."""

    of, start_per_s, low_per_s = PAGEVIEWS, 1_000, 1_000

    def sample(self) -> LoadSample:
        """See `Load.sample`. An event is counted once it is in the engine's count."""
        return self.session.load_sample()

    def lags(self) -> list[Curves]:
        """Return the curves of the engine's count and of each traced view."""
        count = curves.read(self._folder)
        return [count, *(of for _, of in views.traced_curves(self._folder, count.partitions))]

    def _work(self, window: Window, batch_s: float) -> MeasuredWork:
        """Return the throughput of the engine's count, or of a traced view that is slower. Views
        fed by CDC are left out, because this load gives them no backlog."""
        count, within = curves.read(self._folder), (window.start_ms, window.end_ms, batch_s)
        followed = {}
        for view, of in views.traced_curves(self._folder, count.partitions):
            if view.source == self._workload.topic.name:
                try:
                    followed[view.name] = capacity.work(views.as_pageviews(of, count), *within)
                except ValueError as error:
                    raise ValueError(f"in the view {view.name}, {error}") from error
        name, work = capacity.slowest(capacity.work(count, *within), followed)
        return MeasuredWork(work, name)

    def handed_over_per_s(self, window: Window) -> float:
        """Return the rate at which the generator handed pageviews to its Kafka client."""
        count = curves.read(self._folder)
        return throughput(count, window.start_ms, window.end_ms).handed_over_per_s

    def counted_by(self, at_ms: int) -> int:
        """See `Load.counted_by`."""
        processed = curves.read(self._folder).processed
        return int(sum(counted(one, np.array([float(at_ms)]), "right")[0] for one in processed))


class Inserts(Load):
    """Load of inserts into the table that the workload watches. They pass through database, CDC and
    broker into the engine's views, where tracer events show which inserts have arrived."""

    start_per_s, low_per_s = 100, 100

    def __init__(
        self, session: Session, folder: Path, workload: Workload, settings: Settings
    ) -> None:
        super().__init__(session, folder, workload, settings)
        self._partitions = settings.pageviews_partitions
        self._kinds = workload.watched_kinds
        self.of, self._table = self._kinds[0], workload.watched_table
        self._views = _traced_on_cdc_path(workload)
        self._known_ms: list[float] = []
        self._known_due: list[float] = []

    def sample(self) -> LoadSample:
        """See `Load.sample`. An insert is counted once every view on the CDC path contains all
        tracer events that were due before the insert. CPU time is the sum over all services except
        the generator."""
        latest = self.session.latest_counters()
        counts, now_ms = latest.counts, float(latest.counts["now_ms"])
        due = sum(counts[kind]["due"] - counts[kind]["refused"] for kind in self._kinds)
        self._known_ms.append(now_ms)
        self._known_due.append(due)
        tracer = counts["tracer_events"]
        missing_ms = [
            oldest_missing_ms(view, latest.views, tracer, self._partitions) for view in self._views
        ]
        oldest_ms = min(now_ms, *missing_ms)
        return LoadSample(
            at_s=self.session.clock.monotonic(),
            due=due,
            counted=int(np.interp(oldest_ms, self._known_ms, self._known_due)),
            cpu_s=sum(cpu_s for service, cpu_s in latest.cpu_s.items() if service != "loadgen"),
        )

    def lags(self) -> list[Curves]:
        """Return the curves of each traced view on the CDC path.

        Raises:
            RacetrackError: no tracer event has appeared in any view.
        """
        traced = views.traced_curves(self._folder, range(self._partitions))
        found = [of for view, of in traced if view.source == self._table]
        if not found:
            raise RacetrackError(f"No view fed by {self._table} has shown a tracer event.")
        return found

    def _work(self, window: Window, batch_s: float) -> MeasuredWork:
        """Return the throughput of the slowest view on the CDC path, and how its backlog is
        distributed over the stages."""
        inserts, within = self._inserts(), (window.start_ms, window.end_ms)
        in_views = [views.inserts_in_view(inserts, of) for of in self.lags()]
        works = [
            capacity.work(views.inserts_as_curves(inserts, each), *within, batch_s)
            for each in in_views
        ]
        slowest = min(range(len(works)), key=lambda number: works[number].per_s)
        stages = views.backlog_by_stage(inserts, in_views[slowest], *within)
        return MeasuredWork(works[slowest], None, stages)

    def handed_over_per_s(self, window: Window) -> float:
        """Return the rate at which inserts became due in a window."""
        inserts = self._inserts()
        ends = np.interp([window.start_ms, window.end_ms], inserts.at_ms, inserts.due)
        return float(ends[1] - ends[0]) / window.seconds

    def counted_by(self, at_ms: int) -> int:
        """Return the number of inserts in the slowest view on the CDC path at `at_ms`."""
        inserts, at = self._inserts(), np.array([float(at_ms)])
        in_views = [views.inserts_in_view(inserts, of) for of in self.lags()]
        return int(min(counted(each, at, "right")[0] for each in in_views))

    def _inserts(self) -> views.Inserts:
        inserts = views.read_inserts(self._folder)
        if inserts is None:
            path = self._folder / views.INSERTS_FILE
            raise RacetrackError(f"{path} is empty: inserts were not recorded.")
        return inserts


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


def kinds(workload: Workload) -> list[str]:
    """Return the names of the kinds of load that a workload supports."""
    by_cdc = workload.watched_kinds[:1] if _traced_on_cdc_path(workload) else ()
    return [PAGEVIEWS, *by_cdc]


def settings_for(of: str, engine: Engine, settings: Settings) -> Settings:
    """Return the settings for a search: the broker's retention is bounded, and tracer events are
    enabled if the load needs them.

    Raises:
        UsageError: the engine or the workload does not support this kind of load.
    """
    there = kinds(find_workload(settings.workload))
    if of not in there:
        raise UsageError(
            f"--of {of}: the workload {settings.workload} only has {' and '.join(there)}."
        )
    settings = _with_bounded_broker(settings)
    if of == PAGEVIEWS:
        return settings
    if "debezium" not in engine.needs:
        raise UsageError(
            f"--of {of}: {engine.title} reads no table by CDC, so only pageviews can be raised."
        )
    least = TRACERS_PER_PARTITION * settings.pageviews_partitions
    tracer_events_per_s = max(settings.tracer_events_per_second, least)
    return settings.model_copy(update={"tracer_events_per_second": tracer_events_per_s})


def _with_bounded_broker(settings: Settings) -> Settings:
    """Limit what the broker retains, unless the user has set a limit. A search may publish more
    data than fits into memory, but the engine only has to find its backlog in the broker, which is
    at most 30 s of its work."""
    if settings.kafka_retention_bytes >= 0:
        return settings
    kept = int(psutil.virtual_memory().total * KEPT_OF_MEMORY / settings.pageviews_partitions)
    return settings.model_copy(update={"kafka_retention_bytes": kept})


def load_of(of: str, session: Session, folder: Path, settings: Settings) -> Load:
    """Create a load of this kind on a session."""
    return kind_of(of)(session, folder, find_workload(settings.workload), settings)


def kind_of(of: str) -> type[Load]:
    """Return the class of a kind of load."""
    return Pageviews if of == PAGEVIEWS else Inserts


def _traced_on_cdc_path(workload: Workload) -> list[TracedView]:
    """Return the traced views that the watched table feeds and whose rows count tracer events."""
    source = workload.watched_table
    return [view for view in workload.traced_views if view.source == source and not view.is_time]
