"""Contract of a supervisor: the operations in which the runtimes differ.

A supervisor starts, signals and ends units: processes, containers or pods. A unit has the name of
the service that it runs, or one name for all services that share it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Protocol

from racetrack.errors import RacetrackError
from racetrack.stack.contract import OnReady, Say
from racetrack.stack.processes import log_tail


class ServiceError(RacetrackError):
    """A service did not start, or ended unexpectedly; the message ends with the last lines of its
    log."""


def with_log(what: str, log: Path) -> str:
    """Return what happened to a service, and the end of its log."""
    return f"{what}; the end of its log:\n{log_tail(log)}"


class Supervisor(Protocol):
    """Operations of a runtime on the units of one stack; `racetrack.stack.stack` combines them."""

    root: Path  # the stack's folder on this machine, outside of its units

    def unit(self, service: str) -> str:
        """Return the unit that runs a service."""
        return service

    def shown(self, unit: str) -> str:
        """Return the service by whose name messages and log files call a unit."""
        return unit

    def clear(self) -> str | None:
        """Remove at once what a killed run left: its units, their data, and `root`. Return a
        description; None if there was nothing.

        Raises:
            BusyError: the harness did not start what is there.
        """

    def obtain(self, units: Sequence[str], say: Say) -> None:
        """Check that the units can be started here; get what they need.

        Raises:
            UsageError, SetupError, BusyError: they can't be.
        """

    def spawn(self, units: Sequence[str], say: Say, on_ready: OnReady) -> None:
        """Start the units, in the order in which they need each other. Call `on_ready` with each
        unit that is ready; return when all are.

        Raises:
            SetupError: a component can't be installed.
            ServiceError: a unit did not start.
        """

    def signal(self, unit: str, number: Signals) -> None:
        """Send SIGSTOP or SIGCONT to all processes of a unit."""

    def kill_units(self, units: Sequence[str]) -> None:
        """Send SIGKILL to all processes of the units; return when they are gone."""

    def respawn(self, unit: str) -> None:
        """Start a killed unit with the data that it left; return when it is ready.

        Raises:
            ServiceError: the unit did not start.
        """

    def alive(self) -> Mapping[str, Sequence[int]]:
        """Return the live units of this stack, whichever process started them: unit → process
        ids."""

    def end(self) -> str | None:
        """End all units of this stack, and remove their data. Return a description; None if there
        was nothing. Idempotent."""
