"""Kinds of load that a capacity search raises: pageviews, or inserts that arrive by CDC."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from racetrack.analysis import capacity, curves, views
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

# Tracer events per second and partition that show which inserts a view has.
MARKS_PER_PARTITION = 2
# Fraction of the memory that the broker may use for the main topic during a search.
KEPT_OF_MEMORY = 1 / 6


@dataclass(frozen=True)
class MeasuredWork:
    """Throughput at saturation. `view` names the slowest traced view (None: the count was slowest);
    `backlog_by_stage` is the share of the backlog before each stage of the CDC path."""

    work: Work
    view: str | None = None
    backlog_by_stage: Mapping[str, float] = field(default_factory=dict)


class Load(ABC):
    """One kind of load on a session; `of` is its name in the generator."""

    of: str
    start_per_s: int  # first rate of a search
    low_per_s: int  # a rate well below capacity

    def __init__(
        self, session: Session, folder: Path, workload: Workload, settings: Settings
    ) -> None:
        self.session, self._folder = session, folder
        self._workload, self._settings = workload, settings

    def offer(self, per_s: int) -> None:
        """Set the rate without printing it, for a rate that changes every second."""
        self.session.offer(per_s, self.of)

    def set_rate(self, per_s: int) -> None:
        """Set the rate, print it, and check that the load arrives.

        Raises:
            RacetrackError: the load does not arrive.
        """
        self.session.set_rate(per_s, self.of)

    @abstractmethod
    def sample(self) -> LoadSample:
        """Return the counters of events due and counted, and the CPU time used, as of now."""

    @abstractmethod
    def lags(self) -> list[Curves]:
        """Return the curves whose worst lag counts."""

    @abstractmethod
    def work(self, window: Window, batch_s: float) -> MeasuredWork:
        """Return the throughput in a window, in batches.

        Raises:
            ValueError: it has fewer than two updates.
        """

    @abstractmethod
    def handed_over_per_s(self, window: Window) -> float:
        """Return the rate that the generator reached."""

    @abstractmethod
    def counted_by(self, at_ms: int) -> int:
        """Return the number of events that the engine had counted at a time."""


class Pageviews(Load):
    """Events of the main topic, by the engine's count and by traced views."""

    of, start_per_s, low_per_s = PAGEVIEWS, 1_000, 1_000

    def sample(self) -> LoadSample:
        """See `Load.sample`; by the engine's count."""
        return self.session.load_sample()

    def lags(self) -> list[Curves]:
        """See `Load.lags`: the count, and each traced view."""
        count = curves.read(self._folder)
        return [count, *(of for _, of in views.traced_curves(self._folder, count.partitions))]

    def work(self, window: Window, batch_s: float) -> MeasuredWork:
        """See `Load.work`: of the count, or of a slower traced view. Views fed by CDC are left out,
        because this load gives them no backlog."""
        count, within = curves.read(self._folder), (window.start_ms, window.end_ms, batch_s)
        followed = {}
        for view, of in views.traced_curves(self._folder, count.partitions):
            if view.source == self._workload.topic.name:
                try:
                    followed[view.name] = capacity.work(views.as_pageviews(of, count), *within)
                except ValueError as error:
                    raise ValueError(f"of its view {view.name} {error}") from error
        name, work = capacity.slowest(capacity.work(count, *within), followed)
        return MeasuredWork(work, name)

    def handed_over_per_s(self, window: Window) -> float:
        """See `Load.handed_over_per_s`: what the generator gave its Kafka client."""
        count = curves.read(self._folder)
        return throughput(count, window.start_ms, window.end_ms).handed_over_per_s

    def counted_by(self, at_ms: int) -> int:
        """See `Load.counted_by`."""
        processed = curves.read(self._folder).processed
        return int(sum(counted(one, np.array([float(at_ms)]), "right")[0] for one in processed))


class Inserts(Load):
    """Inserts into the table fed by CDC: through database, CDC and broker into the engine's views,
    where tracer events show which inserts have arrived."""

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
        """See `Load.sample`. An insert counts once every view on the CDC path has all tracer events
        due before it. CPU time is that of all services except the generator."""
        latest = self.session.latest_counters()
        counts, now_ms = latest.counts, float(latest.counts["now_ms"])
        due = sum(counts[kind]["due"] - counts[kind]["refused"] for kind in self._kinds)
        self._known_ms.append(now_ms)
        self._known_due.append(due)
        oldest_ms = min(now_ms, self._oldest_missing_ms(counts["tracer_events"], latest.views))
        return LoadSample(
            at_s=self.session.clock.monotonic(),
            due=due,
            counted=int(np.interp(oldest_ms, self._known_ms, self._known_due)),
            cpu_s=sum(cpu_s for service, cpu_s in latest.cpu_s.items() if service != "loadgen"),
        )

    def _oldest_missing_ms(
        self, marks: Mapping[str, Any], held: Mapping[tuple[str, int], int]
    ) -> float:
        """Return the due time of the oldest tracer event missing in a view (evenly spaced)."""
        newest, newest_ms = marks["newest"]
        missing = min(
            views.number_of(view.parity, held.get((view.name, each), 0), each, self._partitions)
            for view in self._views
            for each in range(self._partitions)
        )
        return float(newest_ms) - (int(newest) - 1 - missing) * 1000 / float(marks["rate"])

    def lags(self) -> list[Curves]:
        """See `Load.lags`: each traced view on the CDC path.

        Raises:
            RacetrackError: none has shown a tracer event.
        """
        traced = views.traced_curves(self._folder, range(self._partitions))
        found = [of for view, of in traced if view.source == self._table]
        if not found:
            raise RacetrackError(f"No view fed by {self._table} has shown a tracer event.")
        return found

    def work(self, window: Window, batch_s: float) -> MeasuredWork:
        """See `Load.work`: of the slowest view on the CDC path, with the stages of its backlog."""
        inserts, within = self._inserts(), (window.start_ms, window.end_ms)
        held = [views.inserts_in_view(inserts, of) for of in self.lags()]
        works = [
            capacity.work(views.inserts_as_curves(inserts, each), *within, batch_s) for each in held
        ]
        slowest = min(range(len(works)), key=lambda number: works[number].per_s)
        stages = views.backlog_by_stage(inserts, held[slowest], *within)
        return MeasuredWork(works[slowest], None, stages)

    def handed_over_per_s(self, window: Window) -> float:
        """See `Load.handed_over_per_s`: the inserts that became due."""
        inserts = self._inserts()
        ends = np.interp([window.start_ms, window.end_ms], inserts.at_ms, inserts.due)
        return float(ends[1] - ends[0]) / window.seconds

    def counted_by(self, at_ms: int) -> int:
        """See `Load.counted_by`: of the slowest view on the CDC path."""
        inserts, at = self._inserts(), np.array([float(at_ms)])
        held = [views.inserts_in_view(inserts, of) for of in self.lags()]
        return int(min(counted(each, at, "right")[0] for each in held))

    def _inserts(self) -> views.Inserts:
        inserts = views.read_inserts(self._folder)
        if inserts is None:
            path = self._folder / views.INSERTS_FILE
            raise RacetrackError(f"{path} is empty: inserts were not recorded.")
        return inserts


def kinds(workload: Workload) -> list[str]:
    """Return the kinds of load that a workload has, by their names in the generator."""
    by_cdc = workload.watched_kinds[:1] if _traced_on_cdc_path(workload) else ()
    return [PAGEVIEWS, *by_cdc]


def settings_for(of: str, engine: Engine, settings: Settings) -> Settings:
    """Return the settings for a search: a broker with bounded retention, and tracer events where
    they show what has arrived.

    Raises:
        UsageError: the engine or the workload has no such load.
    """
    there = kinds(find_workload(settings.workload))
    if of not in there:
        raise UsageError(f"--of {of}: the workload {settings.workload} has {' and '.join(there)}.")
    settings = _with_bounded_broker(settings)
    if of == PAGEVIEWS:
        return settings
    if "debezium" not in engine.needs:
        raise UsageError(f"--of {of}: {engine.title} reads no table by CDC.")
    least = MARKS_PER_PARTITION * settings.pageviews_partitions
    tracer_events_per_s = max(settings.tracer_events_per_second, least)
    return settings.model_copy(update={"tracer_events_per_second": tracer_events_per_s})


def _with_bounded_broker(settings: Settings) -> Settings:
    """Bound the broker's retention: a search may publish more than fits into memory, and replays
    no more than its backlog of 30 s. A bound set by the user stays."""
    if settings.kafka_retention_bytes >= 0:
        return settings
    kept = int(psutil.virtual_memory().total * KEPT_OF_MEMORY / settings.pageviews_partitions)
    return settings.model_copy(update={"kafka_retention_bytes": kept})


def load_of(of: str, session: Session, folder: Path, settings: Settings) -> Load:
    """Return this kind of load on a session."""
    return kind_of(of)(session, folder, find_workload(settings.workload), settings)


def kind_of(of: str) -> type[Load]:
    """Return the class of a kind of load."""
    return Pageviews if of == PAGEVIEWS else Inserts


def _traced_on_cdc_path(workload: Workload) -> list[TracedView]:
    """Return the traced views fed by the CDC table that count tracer events."""
    way = workload.watched_table
    return [view for view in workload.traced_views if view.source == way and not view.is_time]
