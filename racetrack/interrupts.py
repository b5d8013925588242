"""Ctrl-C and SIGTERM end a run in good order: they stop the work once, never the cleaning up."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# Python may be anywhere when a signal comes, also in a finalizer or a library's callback, where an
# exception is reported and then forgotten. So long later it is sent once more.
AGAIN_AFTER_S = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Somebody asked the run to stop. Not an Exception, so that only who means it catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number, self.exit_code = number, 128 + number


class Guard:
    """Turns the first signal into Interrupted, in the main thread, unless it was disarmed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._armed = True
        self._pending: int | None = None
        self._again: threading.Timer | None = None

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

    def raise_again(self, ignored: Interrupted) -> None:
        """It was raised where nothing can end the run, so the work goes on: end it elsewhere."""
        self._armed = True
        main = threading.main_thread().ident or 0
        self._again = threading.Timer(AGAIN_AFTER_S, signal.pthread_kill, [main, ignored.number])
        self._again.start()

    def leave(self) -> None:
        """From now on signals are not the guard's."""
        if self._again:
            self._again.cancel()
            self._again.join()


@contextmanager
def unwrapped() -> Iterator[None]:
    """An Interrupted that a library written in C has made a SystemError of is one again."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, Interrupted):
            raise error.__cause__ from None
        raise


@contextmanager
def guarded(say: Callable[[str], None]) -> Iterator[Guard]:
    """While this lasts, SIGINT, SIGTERM and SIGHUP go to the guard."""
    guard = Guard(say)
    # nohup has SIGHUP ignored, and means it.
    meant = [n for n in _SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, guard.handle) for number in meant}
    report = sys.unraisablehook

    def not_raised(what: "sys.UnraisableHookArgs") -> None:
        if isinstance(what.exc_value, Interrupted):
            guard.raise_again(what.exc_value)
        else:
            report(what)

    sys.unraisablehook = not_raised
    try:
        with unwrapped():
            yield guard
    finally:
        guard.leave()
        sys.unraisablehook = report
        for number, previous in before.items():
            signal.signal(number, previous)
