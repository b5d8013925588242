"""What can go wrong in a way that a user can act on: each kind with its exit code."""


class RacetrackError(Exception):
    """Something a user can act on: the message says what happened, why, and what to do next."""

    exit_code = 1


class EngineFailed(RacetrackError):
    """The engine under test ended, or one of its views did."""


class UsageError(RacetrackError):
    """The command or a setting can't be used as given."""

    exit_code = 2


class SetupError(RacetrackError):
    """Something that a run needs is missing and could not be installed."""

    exit_code = 3


class BusyError(RacetrackError):
    """The machine is taken: another run holds the lock, a stack is up, or a port is in use."""

    exit_code = 4
