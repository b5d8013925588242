"""Errors that a user can act on, with their exit codes."""

from pathlib import Path


class RacetrackError(Exception):
    """An error that a user can act on: its message states the event, the cause and the remedy."""

    exit_code = 1


class EngineFailed(RacetrackError):
    """The engine under test, or one of its views, has ended."""


class UsageError(RacetrackError):
    """The command or a setting can't be used as given."""

    exit_code = 2


class UnreadableFile(UsageError):
    """A file of a result is damaged: cut, edited, or not written by Racetrack."""

    def __init__(self, path: Path, why: object, line: int | None = None) -> None:
        where = f"{path}, line {line}" if line else str(path)
        super().__init__(f"{where}: {why}. Copy the original again, or leave this folder out.")


class SetupError(RacetrackError):
    """Something that a run needs is missing and could not be installed."""

    exit_code = 3


class BusyError(RacetrackError):
    """The machine is taken: another run holds the lock, a stack is up, or a port is in use."""

    exit_code = 4
