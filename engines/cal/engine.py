"""The calibration engine: counts pageviews with a programmed flaw, so that the harness can be held
against something known. It has no views, and no purchases reach it."""

import threading
from collections.abc import Iterator

from engines.contract import Engine, Progress, Summary
from engines.shared.progress_log import updates_of
from racetrack.stack.contract import Stack


class Cal(Engine):
    """See `engines.contract.Engine`."""

    name = "cal"
    title = "Calibration engine"
    services = ("cal",)
    runtimes = ("native",)
    is_calibration = True

    def load_demo(self, stack: Stack) -> None:
        """There is none: its service counts from when it is ready."""

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """What the consumer writes to its output."""
        return updates_of(stack.log_of("cal"), stop)

    def usage_hints(self, stack: Stack) -> list[str]:
        """What it reads; it has nothing to look at but its log."""
        where = stack.endpoints.kafka
        return [
            f"It only counts {where}'s pageviews; its log tells. CAL_* in engines/cal/.env flaw it."
        ]


ENGINE = Cal()
