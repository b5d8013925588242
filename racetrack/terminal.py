"""The terminal of a run: its output, which also goes to `start.log`, and its signals.

Ctrl-C, SIGTERM and SIGHUP stop the work once, and never the clean-up after it.
"""

import io
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.table import Table

# Rich's default of 12.5 takes 1 % of a core from what is measured.
REDRAWS_PER_S = 1
REMARK = "  remark: "
# An exception raised in a finalizer or a library's callback is reported and dropped; the signal is
# sent again after this time.
AGAIN_AFTER_S = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def patient_console(file: TextIO | None = None) -> "Console":
    """Return a console on `file` (standard output if None) that goes quiet when the reader of its
    pipe has gone, so that the run still cleans up."""
    from rich.console import Console

    class PatientConsole(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True  # Rich would exit

    return PatientConsole(file=file, highlight=False, soft_wrap=True)


def as_text(table: "Table", width: int) -> str:
    """Return a table as plain lines of this width."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip()


class Screen:
    """Output of a run: colours and the live line only on a terminal, plain lines in the log."""

    def __init__(self, console: "Console | None" = None) -> None:
        self._console = console or patient_console()
        self._log: TextIO | None = None

    @contextmanager
    def copied_to(self, log: TextIO) -> Iterator[None]:
        """Copy every line to `log` inside the context."""
        self._log = log
        try:
            yield
        finally:
            self._log = None
            with suppress(OSError):  # `say` has reported that the disk is full
                log.close()

    def say(self, line: str, style: str | None = None) -> None:
        """Print one or several lines, on the terminal and to the log."""
        try:
            self._console.print(line, style=style, markup=False)
        except OSError:  # the terminal has gone; the log goes on
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
        """Print a remark: something that most runs do not have."""
        self.say(f"{REMARK}{line}")

    @contextmanager
    def live(self, text: str) -> Iterator["Status"]:
        """Show a line that is redrawn inside the context, on a terminal only."""
        with self._console.status(text, refresh_per_second=REDRAWS_PER_S) as status:
            yield status


class Interrupted(BaseException):
    """The user asked the run to stop. Not an Exception: only code that names it catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number, self.exit_code = number, 128 + number


class Guard:
    """Signal handler: the first signal raises Interrupted in the main thread, while armed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._armed = True
        self._pending: int | None = None
        self._again: threading.Timer | None = None

    def disarm(self) -> None:
        """Raise nothing from now on: only clean-up is left."""
        self._armed = False

    def rearm(self) -> None:
        """Let signals end the work again, after clean-up.

        Raises:
            Interrupted: a signal came while the guard was disarmed.
        """
        self._armed = True
        if self._pending is not None:
            self._armed = False
            raise Interrupted(self._pending)

    @property
    def is_pending(self) -> bool:
        """Whether a signal came while the guard was disarmed."""
        return self._pending is not None

    def postpone(self, interrupted: Interrupted) -> None:
        """Raise this signal again at the next `rearm`."""
        self._pending = interrupted.number

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self._armed:
            self._pending = number
            self._say("  still cleaning up; please wait")
            return
        self._armed = False
        raise Interrupted(number)

    def raise_again(self, ignored: Interrupted) -> None:
        """Send the signal again: Python dropped the exception where it was raised."""
        self._armed = True
        main = threading.main_thread().ident or 0
        self._again = threading.Timer(AGAIN_AFTER_S, signal.pthread_kill, [main, ignored.number])
        self._again.start()

    def leave(self) -> None:
        """Cancel a signal that is about to be sent again."""
        if self._again:
            self._again.cancel()
            self._again.join()


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise an Interrupted that a C library has turned into a SystemError."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, Interrupted):
            raise error.__cause__ from None
        raise


@contextmanager
def guarded(say: Callable[[str], None]) -> Iterator[Guard]:
    """Send SIGINT, SIGTERM and SIGHUP to a guard inside the context."""
    guard = Guard(say)
    # Under nohup SIGHUP stays ignored.
    caught = [n for n in _SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, guard.handle) for number in caught}
    report = sys.unraisablehook

    def not_raised(args: "sys.UnraisableHookArgs") -> None:
        if isinstance(args.exc_value, Interrupted):
            guard.raise_again(args.exc_value)
        else:
            report(args)

    sys.unraisablehook = not_raised
    try:
        with unwrapped():
            yield guard
    finally:
        guard.leave()
        sys.unraisablehook = report
        for number, previous in before.items():
            signal.signal(number, previous)
