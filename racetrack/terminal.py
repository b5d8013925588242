"""Output of a run, which also goes to `start.log`, and handling of its signals.

Ctrl-C, SIGTERM and SIGHUP interrupt the work, but not the clean-up after it.
"""

import io
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.table import Table

# With Rich's default of 12.5 redraws per second, drawing takes 1 % of a core.
REDRAWS_PER_S = 1
# Lines of progress where there is no terminal.
PROGRESS_EVERY_S = 10.0
REMARK = "  remark: "
# Finalizers, callbacks and libraries in C may drop the exception of a signal, so it is raised again
# after each such time until the clean-up begins.
AGAIN_AFTER_S = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def patient_console(file: TextIO | None = None) -> "Console":
    """Return a console that stops printing when its pipe is closed.

    Rich would exit then, and the run would not clean up. `file` None means standard output.
    """
    from rich.console import Console

    class PatientConsole(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True

    return PatientConsole(file=file, highlight=False, soft_wrap=True)


def as_text(table: "Table", width: int) -> str:
    """Return a table as plain text, `width` characters wide."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip()


class Screen:
    """Output of a run. Colours and the live line appear on a terminal only, never in the log."""

    def __init__(self, console: "Console | None" = None) -> None:
        self._console = console or patient_console()
        self._log: TextIO | None = None

    @contextmanager
    def copied_to(self, log: TextIO) -> Iterator[None]:
        """Copy every line to `log` inside the context; close it at the end."""
        self._log = log
        try:
            yield
        finally:
            self._log = None
            with suppress(OSError):  # if the disk is full, `say` has reported it
                log.close()

    def say(self, line: str, style: str | None = None) -> None:
        """Print one or several lines on the terminal, and write them to the log."""
        try:
            self._console.print(line, style=style, markup=False)
        except OSError:  # the terminal is closed; the log continues
            self._console.quiet = True
        if self._log:
            try:
                self._log.write(line + "\n")
            except OSError as error:  # a full disk must not keep a run from cleaning up
                self._log = None
                self.say(f"  start.log ends here: {error.strerror}")

    def heading(self, line: str) -> None:
        """Print a line in bold."""
        self.say(line, style="bold")

    def remark(self, line: str) -> None:
        """Print a line marked as a remark, for an event that most runs do not have."""
        self.say(f"{REMARK}{line}")

    @contextmanager
    def live(self, text: str) -> Iterator["Status"]:
        """Show a status line inside the context; no effect unless output is a terminal."""
        with self._console.status(text, refresh_per_second=REDRAWS_PER_S) as status:
            yield status


Progress = Callable[[int, int], None]  # is called with what is done, and with the total


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def showing_progress(
    console: "Console", what: str, now_s: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Show how much of some work is done, and how long the rest will take: in a status line on a
    terminal, otherwise in a line every PROGRESS_EVERY_S."""
    began_s = shown_s = now_s()
    with console.status(what, refresh_per_second=REDRAWS_PER_S) as status:

        def show(done: int, total: int) -> None:
            nonlocal shown_s
            left_s = (now_s() - began_s) * (total - done) / max(done, 1)
            text = f"{what}: {done:,} of {total:,}, about {left_s:,.0f} s left"
            status.update(text)
            if not console.is_terminal and now_s() - shown_s >= PROGRESS_EVERY_S:
                shown_s = now_s()
                console.print(text, markup=False)

        yield show


class Interrupted(BaseException):
    """A signal requested the end of the run. A BaseException, so that `except Exception` lets it
    pass."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number, self.exit_code = number, 128 + number


class Guard:
    """Signal handler. While it is armed, a signal raises Interrupted in the main thread, again and
    again until it is accepted."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._armed = True
        self._number = 0  # the signal that has raised Interrupted; 0: none, or it was accepted
        self._pending: int | None = None

    def disarm(self) -> None:
        """Stop raising Interrupted, for the time of the clean-up."""
        self._armed = False
        self.accept()

    def rearm(self) -> None:
        """Let signals raise Interrupted again, after a clean-up.

        Raises:
            Interrupted: a signal came while the guard was disarmed.
        """
        self._armed = True
        if self._pending is not None:
            self._armed = False
            raise Interrupted(self._pending)

    @property
    def is_pending(self) -> bool:
        """True if a signal came while the guard was disarmed."""
        return self._pending is not None

    def postpone(self, interrupted: Interrupted) -> None:
        """Raise this signal again at the next `rearm`."""
        self._pending = interrupted.number

    def accept(self) -> None:
        """Don't raise Interrupted again for the last signal, since it was caught."""
        self._number = 0
        signal.setitimer(signal.ITIMER_REAL, 0)

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Raise Interrupted in place of the error into which a library in C has turned it: CPython
        raises a SystemError if the library returns a result, and some libraries raise an error of
        their own."""
        try:
            yield
        except Exception as error:
            if self._number:
                raise Interrupted(self._number) from error
            raise

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self._armed:
            self._pending = number
            self._say("  still cleaning up; please wait")
            return
        self._number = number
        signal.setitimer(signal.ITIMER_REAL, AGAIN_AFTER_S, AGAIN_AFTER_S)
        self.raise_again()

    def raise_again(self, *_: object) -> None:
        """Raise Interrupted for the last signal, unless one is being handled."""
        if self._armed and not _is_interrupted(sys.exc_info()[1]):
            raise Interrupted(self._number)


def _is_interrupted(error: BaseException | None) -> bool:
    """Return whether an Interrupted, or an error that replaced it, is being handled."""
    while error and not isinstance(error, Interrupted):
        error = error.__cause__ or error.__context__
    return error is not None


@contextmanager
def guarded(say: Callable[[str], None]) -> Iterator[Guard]:
    """Handle SIGINT, SIGTERM and SIGHUP with a Guard inside the context."""
    guard = Guard(say)
    # nohup makes its programs ignore SIGHUP; keep that.
    caught = [n for n in _SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, guard.handle) for number in caught}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, guard.raise_again)
    report = sys.unraisablehook

    def not_raised(args: "sys.UnraisableHookArgs") -> None:
        if not isinstance(args.exc_value, Interrupted):  # it is raised again
            report(args)

    sys.unraisablehook = not_raised
    try:
        with guard.restoring():
            yield guard
    finally:
        guard.accept()
        sys.unraisablehook = report
        for number, previous in before.items():
            signal.signal(number, previous)
