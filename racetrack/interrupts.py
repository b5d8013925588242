"""Ctrl-C and SIGTERM end a run in good order: they stop the work once, never the cleaning up."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Somebody asked the run to stop. Not an Exception, so that only who means it catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.exit_code = 128 + number


class Guard:
    """Turns the first signal into Interrupted, in the main thread, unless it was disarmed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._armed = True
        self._pending: int | None = None

    def disarm(self) -> None:
        """From now on signals raise nothing: what is left to do is cleaning up."""
        self._armed = False

    def rearm(self) -> None:
        """Cleaning up is over and more work follows: signals end it again.

        Raises:
            Interrupted: a signal came while it was disarmed.
        """
        self._armed = True
        if self._pending is not None:
            self._armed = False
            raise Interrupted(self._pending)

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        if not self._armed:
            self._pending = number
            self._say("  still cleaning up: nothing is to be left behind")
            return
        self._armed = False
        raise Interrupted(number)


@contextmanager
def guarded(say: Callable[[str], None]) -> Iterator[Guard]:
    """While this lasts, SIGINT, SIGTERM and SIGHUP go to the guard."""
    guard = Guard(say)
    # nohup has SIGHUP ignored, and means it.
    meant = [n for n in _SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, guard.handle) for number in meant}
    try:
        yield guard
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
