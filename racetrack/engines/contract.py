"""What the harness asks of an engine; a new engine is one module here and one script."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from racetrack.errors import RacetrackError
from racetrack.settings import Settings
from racetrack.stack.contract import Stack


class DemoError(RacetrackError):
    """The engine refused the demo; the message holds what the engine said."""


@dataclass(frozen=True)
class Summary:
    """What the engine's `pageviews_summary` held when it last changed.

    `timestamp_ms` is when it changed and `max_received_at_ms` the newest pageview it had counted,
    both epoch milliseconds; `dt_ms` is the published freshness, now − newest `received_at`.
    """

    timestamp_ms: int
    total: int
    max_received_at_ms: int
    dt_ms: float


@dataclass(frozen=True)
class Progress:
    """One changed row of `pageviews_progress`: what the engine has counted of one partition."""

    timestamp_ms: int
    partition: int
    total: int
    max_received_at_ms: int


class Engine(Protocol):
    """One streaming engine. Every method may be called from a thread of its own."""

    name: str  # as typed on the command line and as it stands in run folders
    title: str  # as a person knows it
    needs: tuple[str, ...]  # services it needs beside the database, broker and generator
    services: tuple[str, ...]  # its own services, those whose cost is the engine's cost

    def load_demo(self, stack: Stack) -> None:
        """Run the demo's script in the engine and return when all its views are there.

        Raises:
            DemoError: the engine refused it.
        """

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """Every change of the two progress views, as the engine tells it, until `stop` is set."""

    def where_to_play(self, settings: Settings) -> list[str]:
        """Lines that tell a person how to use the engine by hand while the stack is up."""
