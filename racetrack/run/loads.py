"""The load that a capacity search raises: events in the main topic."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from racetrack import host
from racetrack.analysis import capacity, curves, outcome, raw, views
from racetrack.analysis.capacity import Work
from racetrack.analysis.curves import Curves, counted, throughput
from racetrack.config import Settings, for_record
from racetrack.errors import RacetrackError
from racetrack.results.run import Window
from racetrack.run.search import LoadSample
from racetrack.run.session import Session
from racetrack.workloads.contract import find_workload

# A rate well below the capacity of any engine, and the first rate of a search.
LOW_PER_S = START_PER_S = 1_000
# Fraction of the machine's memory that the broker may use for the main topic during a search.
KEPT_OF_MEMORY = 1 / 6


@dataclass(frozen=True)
class MeasuredWork:
    """Throughput at saturation. `view` is the name of the slowest traced view; None if the engine's
    count was slowest."""

    work: Work
    view: str | None = None


class Load:
    """Load on a session: events in the main topic, measured by the engine's count and by traced
    views."""

    def __init__(self, session: Session, folder: Path, settings: Settings) -> None:
        self.session, self._folder = session, folder
        self._settings, self._workload = settings, find_workload(settings.workload)

    def offer(self, per_s: int) -> None:
        """Set the rate without printing it; for rates that change every second."""
        self.session.offer(per_s)

    def set_rate(self, per_s: int) -> None:
        """Set the rate, print it, and check that the load arrives.

        Raises:
            RacetrackError: the load does not arrive.
        """
        self.session.set_rate(per_s)

    def work(self, window: Window, batch_s: float) -> MeasuredWork:
        """Return the throughput in a window, divided into batches of about `batch_s` seconds.

        Raises:
            RacetrackError: the window has fewer than two updates.
        """
        try:
            return self._work(window, batch_s)
        except ValueError as error:
            raise RacetrackError(f"The engine's capacity is unknown: {error}.") from error

    def cpu_s_per_million(self, window: Window, made: MeasuredWork) -> dict[str, float]:
        """Return the CPU seconds of each service per million events processed in a window."""
        usage, counted = raw.usage(self._folder), made.work.per_s * window.seconds
        return capacity.cpu_s_per_million(usage, window.start_ms, window.end_ms, counted)

    def sample(self) -> LoadSample:
        """Return the current counters of due and counted events, and the CPU time used so far. An
        event is counted once it is in the engine's count."""
        return self.session.load_sample()

    def lags(self) -> list[Curves]:
        """Return the curves from which a rate trial computes the lag: those of the engine's count
        and of each traced view. The highest lag counts.

        Raises:
            RacetrackError: the broker has deleted part of the backlog.
        """
        count = self._count()
        return [count, *(of for _, of in views.traced_curves(self._folder, count.partitions))]

    def _work(self, window: Window, batch_s: float) -> MeasuredWork:
        """Return the throughput of the engine's count, or of a traced view that is slower. Views
        fed by CDC are left out, because this load gives them no backlog. Raise ValueError if there
        are too few updates."""
        count, within = self._count(), (window.start_ms, window.end_ms, batch_s)
        followed = {}
        for view, of in views.traced_curves(self._folder, count.partitions):
            if view.source == self._workload.topic.name:
                try:
                    followed[view.name] = capacity.work(views.as_pageviews(of, count), *within)
                except ValueError as error:
                    raise ValueError(f"in the view {view.name}, {error}") from error
        name, work = capacity.slowest(capacity.work(count, *within), followed)
        return MeasuredWork(work, name)

    def _count(self) -> Curves:
        count = curves.read(self._folder)
        deleted = outcome.deleted_unread(curves.deleted_unread(count), for_record(self._settings))
        if deleted:
            raise RacetrackError(f"{deleted}.")
        return count

    def handed_over_per_s(self, window: Window) -> float:
        """Return the rate at which the generator handed pageviews to its Kafka client."""
        count = curves.read(self._folder)
        return throughput(count, window.start_ms, window.end_ms).handed_over_per_s

    def counted_by(self, at_ms: int) -> int:
        """Return the number of events that the engine had counted at `at_ms`."""
        processed = curves.read(self._folder).processed
        return int(sum(counted(one, np.array([float(at_ms)]), "right")[0] for one in processed))


def settings_for(settings: Settings) -> Settings:
    """Return the settings for a search: the broker's retention is bounded, unless the user has set
    a limit. A search may publish more data than fits into memory, but the engine only has to find
    its backlog in the broker, which is at most 30 s of its work."""
    if settings.kafka_retention_bytes >= 0:
        return settings
    kept = int(host.memory()[1] * KEPT_OF_MEMORY / settings.pageviews_partitions)
    return settings.model_copy(update={"kafka_retention_bytes": kept})
