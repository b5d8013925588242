"""What a search for a limit raises: the rate of pageviews, or that of inserts that come by CDC."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from racetrack.analysis import capacity, cdc, curves, views
from racetrack.analysis.capacity import Work
from racetrack.analysis.curves import Curves
from racetrack.analysis.lag import counted, throughput
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError, UsageError
from racetrack.limit_record import PAGEVIEWS
from racetrack.run.session import Session
from racetrack.run.steering import Look
from racetrack.run_record import Window
from racetrack.settings import Settings
from racetrack.workload import MarkedView, Workload, find_workload

# Two a second in each partition, by which inserts are followed if marks are not on already.
MARKS_PER_PARTITION = 2
# What the broker keeps of the main topic while a search overloads an engine.
KEPT_OF_MEMORY = 1 / 6


@dataclass(frozen=True)
class Worked:
    """What was worked in a window with always more to do: `view` names the followed view that
    worked least, if that was not the count; `waited` is for what the backlog waited, by stage."""

    work: Work
    view: str | None = None
    waited: Mapping[str, float] = field(default_factory=dict)


class Load(ABC):
    """One kind of load on a session; `of` names it, as the generator does."""

    of: str
    start_per_s: int  # what a search begins with
    little_per_s: int  # so few that an engine that works more has little to do

    def __init__(
        self, session: Session, folder: Path, workload: Workload, settings: Settings
    ) -> None:
        self.session, self._folder = session, folder
        self._workload, self._settings = workload, settings

    def offer(self, per_s: int) -> None:
        """Set the rate, without a word: for one that changes every second."""
        self.session.offer(per_s, self.of)

    def set_rate(self, per_s: int) -> None:
        """Set it, say so, and see that the load arrives.

        Raises:
            RacetrackError: it does not.
        """
        self.session.set_rate(per_s, self.of)

    @abstractmethod
    def look(self) -> Look:
        """What was due, done and used by now."""

    @abstractmethod
    def lags(self) -> list[Curves]:
        """By which the lag is judged: the worst of them."""

    @abstractmethod
    def work(self, window: Window, batch_s: float) -> Worked:
        """What was worked in a window, in batches.

        Raises:
            ValueError: there are no two updates in it.
        """

    @abstractmethod
    def handed_over_per_s(self, window: Window) -> float:
        """What truly was offered."""

    @abstractmethod
    def counted_by(self, at_ms: int) -> int:
        """How many the engine had done by then."""


class Pageviews(Load):
    """The main topic's events: counted by the engine, and shown by views with marks."""

    of, start_per_s, little_per_s = PAGEVIEWS, 1_000, 1_000

    def look(self) -> Look:
        """As the engine counts them."""
        return self.session.look()

    def lags(self) -> list[Curves]:
        """Of the count, and of each followed view."""
        count = curves.read(self._folder)
        return [count, *(of for _, of in views.told(self._folder, count.partitions))]

    def work(self, window: Window, batch_s: float) -> Worked:
        """That of the count, or of a followed view that works less. What comes by CDC is no part of
        the load, and its views have no backlog of their own."""
        count, within = curves.read(self._folder), (window.start_ms, window.end_ms, batch_s)
        followed = {}
        for view, of in views.told(self._folder, count.partitions):
            if view.way == self._workload.topic.name:
                try:
                    followed[view.name] = capacity.work(views.as_pageviews(of, count), *within)
                except ValueError as error:
                    raise ValueError(f"of its view {view.name} {error}") from error
        name, work = capacity.slowest(capacity.work(count, *within), followed)
        return Worked(work, name)

    def handed_over_per_s(self, window: Window) -> float:
        """By the generator to its Kafka client."""
        told = curves.read(self._folder)
        return throughput(told, window.start_ms, window.end_ms).handed_over_per_s

    def counted_by(self, at_ms: int) -> int:
        """By its count."""
        processed = curves.read(self._folder).processed
        return int(sum(counted(one, np.array([float(at_ms)]), "right")[0] for one in processed))


class Inserts(Load):
    """Inserts of the watched table: through the database, CDC and the broker into the engine's
    views, where marks show which of them are there."""

    start_per_s, little_per_s = 100, 100

    def __init__(
        self, session: Session, folder: Path, workload: Workload, settings: Settings
    ) -> None:
        super().__init__(session, folder, workload, settings)
        self._partitions = settings.pageviews_partitions
        self._kinds = workload.watched_kinds
        self.of, self._table = self._kinds[0], workload.watched_table
        self._views = _marked_on_the_way(workload)
        self._known_ms: list[float] = []
        self._known_due: list[float] = []

    def look(self) -> Look:
        """As the marks say which a view of that way holds: those due before the oldest mark that it
        lacks. The cost is that of all services but the generator."""
        heard = self.session.heard()
        told, now_ms = heard.counts, float(heard.counts["now_ms"])
        due = sum(told[kind]["due"] - told[kind]["refused"] for kind in self._kinds)
        self._known_ms.append(now_ms)
        self._known_due.append(due)
        oldest_ms = min(now_ms, self._oldest_missing_ms(told["marks"], heard.seen))
        return Look(
            at_s=time.monotonic(),
            due=due,
            counted=int(np.interp(oldest_ms, self._known_ms, self._known_due)),
            cpu_s=sum(cpu_s for service, cpu_s in heard.cpu_s.items() if service != "loadgen"),
        )

    def _oldest_missing_ms(
        self, marks: Mapping[str, Any], seen: Mapping[tuple[str, int], int]
    ) -> float:
        """When the oldest mark was due that one of the views lacks. Marks are due evenly."""
        newest, newest_ms = marks["newest"]
        missing = min(
            views.number_of(view.turn, seen.get((view.name, each), 0), each, self._partitions)
            for view in self._views
            for each in range(self._partitions)
        )
        return float(newest_ms) - (int(newest) - 1 - missing) * 1000 / float(marks["rate"])

    def lags(self) -> list[Curves]:
        """Of each followed view on the way.

        Raises:
            RacetrackError: none has told of a mark.
        """
        told = views.told(self._folder, range(self._partitions))
        found = [of for view, of in told if view.way == self._table]
        if not found:
            raise RacetrackError(f"No view that {self._table} come to has told of a mark.")
        return found

    def work(self, window: Window, batch_s: float) -> Worked:
        """That of the view on the way that works least, and where inserts waited for it."""
        told, within = self._inserts(), (window.start_ms, window.end_ms)
        held = [cdc.in_view(told, of) for of in self.lags()]
        works = [capacity.work(cdc.as_curves(told, one), *within, batch_s) for one in held]
        slowest = min(range(len(works)), key=lambda number: works[number].per_s)
        return Worked(works[slowest], None, cdc.waited(told, held[slowest], *within))

    def handed_over_per_s(self, window: Window) -> float:
        """What became due: the database is a part of the way."""
        told = self._inserts()
        ends = np.interp([window.start_ms, window.end_ms], told.at_ms, told.due)
        return float(ends[1] - ends[0]) / window.seconds

    def counted_by(self, at_ms: int) -> int:
        """By the least of the views on the way."""
        told, at = self._inserts(), np.array([float(at_ms)])
        return int(min(counted(cdc.in_view(told, of), at, "right")[0] for of in self.lags()))

    def _inserts(self) -> cdc.Inserts:
        told = cdc.read(self._folder)
        if told is None:
            raise RacetrackError(
                f"{self._folder / cdc.FILE} has no row: inserts were not followed."
            )
        return told


def kinds(workload: Workload) -> list[str]:
    """What can be raised on a workload, by the generator's names."""
    by_cdc = workload.watched_kinds[:1] if _marked_on_the_way(workload) else ()
    return [PAGEVIEWS, *by_cdc]


def settings_for(of: str, engine: Engine, settings: Settings) -> Settings:
    """The settings with what is needed to raise it: a broker that keeps no more than memory holds,
    and marks where they tell what has come.

    Raises:
        UsageError: this engine, or this workload, has no such load.
    """
    there = kinds(find_workload(settings.workload))
    if of not in there:
        raise UsageError(f"--of {of}: the workload {settings.workload} has {' and '.join(there)}.")
    settings = _with_bounded_broker(settings)
    if of == PAGEVIEWS:
        return settings
    if "debezium" not in engine.needs:
        raise UsageError(f"--of {of}: {engine.title} reads nothing that comes by CDC.")
    least = MARKS_PER_PARTITION * settings.pageviews_partitions
    marks_per_s = max(settings.marks_per_second, least)
    return settings.model_copy(update={"marks_per_second": marks_per_s})


def _with_bounded_broker(settings: Settings) -> Settings:
    """Nobody replays or verifies what a search published, which may be more than the memory holds;
    the backlog of 30 s is far less. A bound that was set stays."""
    if settings.kafka_retention_bytes >= 0:
        return settings
    kept = int(psutil.virtual_memory().total * KEPT_OF_MEMORY / settings.pageviews_partitions)
    return settings.model_copy(update={"kafka_retention_bytes": kept})


def load_of(of: str, session: Session, folder: Path, settings: Settings) -> Load:
    """That kind of load on a session."""
    return kind_of(of)(session, folder, find_workload(settings.workload), settings)


def kind_of(of: str) -> type[Load]:
    """What stands for such a load."""
    return Pageviews if of == PAGEVIEWS else Inserts


def _marked_on_the_way(workload: Workload) -> list[MarkedView]:
    """The followed views that the watched table's inserts come to, which count marks."""
    way = workload.watched_table
    return [view for view in workload.marked if view.way == way and not view.is_time]
