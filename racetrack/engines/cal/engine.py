"""The calibration engine: counts pageviews with injected defects, to check whether the harness
measures them.

It has one view, which may lag behind its counts, and it reads no purchases."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from racetrack.engines.cal.settings import CalibrationSettings
from racetrack.engines.contract import (
    Access,
    CalibrationEngine,
    NoSuchView,
    Progress,
    Reader,
    Seen,
    Summary,
)
from racetrack.engines.shared.progress_log import seen_in, updates_of
from racetrack.results.defects import InjectedDefect
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import Query, TracedView, find_workload

if TYPE_CHECKING:
    import pyarrow

# The reader looks for new lines of the log this often. On average, half of this time is added to
# the age of its answers.
ANSWERS_LOOK_EVERY_S = 0.01


class LogReader:
    """Reader of this engine's only view; see `racetrack.engines.contract.Reader`. The view's state
    is taken from the engine's log."""

    def __init__(self, queries: Sequence[Query], answer_s: float) -> None:
        self._by = {query.view: query.by for query in queries if query.by and query.by.is_time}
        self._answer_s = answer_s
        self._newest: dict[int, int] = {}

    def take_all(self, said: Iterator[Seen]) -> None:
        """Record the updates of the view that `said` yields, until it ends."""
        for seen in said:
            self._newest[seen.partition] = seen.value

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return one row for each partition, after the delay `answer_s`."""
        import pyarrow as pa

        if not (by := self._by.get(view)):
            raise NoSuchView(f"The calibration engine has no view {view!r}.")
        newest = [self._newest.get(partition, 0) for partition in range(len(among))]
        time.sleep(self._answer_s)
        return pa.table({key: list(among), by.column: newest})


class Cal(CalibrationEngine):
    """See `racetrack.engines.contract.CalibrationEngine`."""

    name = "cal"
    title = "Calibration engine"
    order = 9
    services = ("cal",)
    kafka_elsewhere = True
    runtimes = ("native",)
    scalable_on = ("native",)

    def settings_of(self, defect: InjectedDefect) -> Mapping[str, str]:
        """Return the settings that define this defect. The setting of a field is called `CAL_`,
        followed by the field's name."""
        return {f"CAL_{name.upper()}": str(value) for name, value in asdict(defect).items()}

    def load_demo(self, stack: Stack) -> None:
        """Do nothing: the engine's service begins to count when it starts."""

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the updates that the consumer writes to its output."""
        return updates_of(stack.log_of("cal"), stop)

    def seen(
        self, stack: Stack, traced: Sequence[TracedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """Yield the updates of the engine's only view, which contains the due time of the newest
        pageview. Each update is yielded once for every traced view of the main topic that contains
        due times, as if each were this view."""
        topic = find_workload(stack.settings.workload).topic.name
        names = [view.name for view in traced if view.is_time and view.source == topic]
        for seen in seen_in(stack.log_of("cal"), stop):
            for name in names:
                yield replace(seen, view=name)

    @contextmanager
    def reader(self, access: Access) -> Iterator[Reader]:
        """Open a reader that answers after the injected delay, with the view's state at the time of
        the query."""
        if not access.queries:  # the log is only followed for clients that repeat queries
            yield LogReader((), 0)
            return
        stop = threading.Event()
        answer_s = CalibrationSettings.of(access.settings).cal_answer_ms / 1000
        with ThreadPoolExecutor(1) as following:
            reader = LogReader(access.queries, answer_s)
            updates = seen_in(access.log_of("cal"), stop, ANSWERS_LOOK_EVERY_S)
            taken = following.submit(reader.take_all, updates)
            try:
                yield reader
            finally:
                stop.set()
                taken.result()

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return where the engine's counts are, and how to inject defects."""
        where = stack.endpoints.kafka
        return [
            f"The engine only counts the pageviews in {where}, and writes the counts into its log.",
            "The settings CAL_* in racetrack/engines/cal/.env inject defects.",
        ]


ENGINE = Cal()
