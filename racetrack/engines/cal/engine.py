"""The calibration engine: counts events with injected defects, to check whether the harness
measures them.

It writes its views where other engines write theirs (CAL_PATH), and there they are followed by the
code that follows those engines. Besides the progress views it has one view, which may lag behind
its counts. It reads no purchases."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from racetrack.config import Settings
from racetrack.engines.cal import paths
from racetrack.engines.cal.settings import CalibrationSettings
from racetrack.engines.contract import (
    Access,
    CalibrationEngine,
    Engine,
    NoSuchView,
    Progress,
    Reader,
    Seen,
    Summary,
)
from racetrack.results.defects import InjectedDefect
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import TracedView

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class DelayedReader:
    """Reader of the engine's views on an observation path, whose answers take longer; see
    `racetrack.engines.contract.Reader`."""

    reader: Reader
    views: Sequence[str]
    answer_s: float

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return the rows as of the time of the query, after the delay `answer_s`."""
        if view not in self.views:
            raise NoSuchView(f"The calibration engine has no view {view!r}.")
        rows = self.reader.rows(view, key, among)
        time.sleep(self.answer_s)
        return rows


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

    def needs_in(self, settings: Settings) -> tuple[str, ...]:
        """Return the services on the observation path, which are not the engine's cost."""
        return paths.NEEDS[_path(settings)]

    def observer_in(self, settings: Settings) -> Engine:
        """Return the engine whose code follows views on the observation path."""
        return paths.observer_of(_path(settings))

    def check(self, stack: Stack) -> None:
        """Check that the stack starts the services on the observation path."""
        paths.require_own(stack.settings, _path(stack.settings))

    def load_demo(self, stack: Stack) -> None:
        """Create what the path needs. The engine's service begins to count when it starts."""
        paths.begin(stack, _path(stack.settings))

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Yield the updates that arrive on the observation path."""
        return self.observer_in(stack.settings).updates(stack, stop)

    def traced_views(self, settings: Settings) -> Sequence[TracedView]:
        """Return the traced views that the engine writes."""
        return paths.traced_views(settings)

    def seen(
        self, stack: Stack, traced: Sequence[TracedView], stop: threading.Event
    ) -> Iterator[Seen]:
        """Yield the due times in the engine's view that arrive on the observation path. The view
        contains all events, so its value is the due time of the newest one."""
        return self.observer_in(stack.settings).seen(stack, traced, stop)

    def clients(self, settings: Settings) -> Mapping[str, list[int]]:
        """Return the processes of the observation path's clients."""
        return self.observer_in(settings).clients(settings)

    @contextmanager
    def reader(self, access: Access) -> Iterator[Reader]:
        """Open the reader of the observation path, with answers after the injected delay."""
        answer_s = CalibrationSettings.of(access.settings).cal_answer_ms / 1000
        with self.observer_in(access.settings).reader(access) as reader:
            yield DelayedReader(reader, paths.views_of(access.settings).names, answer_s)

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return where the engine's counts are, and how to inject defects."""
        where = stack.endpoints.kafka
        return [
            f"The engine only counts the events in {where}.",
            "racetrack/engines/cal/.env: where it writes its counts, and the defects.",
        ]


def _path(settings: Settings) -> str:
    return CalibrationSettings.of(settings).cal_path


ENGINE = Cal()
