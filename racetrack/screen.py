"""What a person sees: lines that also go to `start.log`, and one live line on a terminal."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from rich.console import Console
from rich.status import Status
from rich.table import Table

# Rich's 12.5 take a hundredth of a core from what is measured.
REDRAWS_PER_S = 2
REMARK = "  remark: "


class _PatientConsole(Console):
    """A terminal or pipe that has gone must not end a run that still has to clean up."""

    def on_broken_pipe(self) -> None:
        """Rich would end the process here."""
        self.quiet = True


def patient_console(file: TextIO | None = None) -> Console:
    """A console on `file` (standard output if None) that outlives it."""
    return _PatientConsole(file=file, highlight=False, soft_wrap=True)


def as_text(table: Table, width: int) -> str:
    """A table as plain lines of this width, wherever they go."""
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip()


class Screen:
    """Colours and the live line only on a terminal; the log gets the plain lines."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or patient_console()
        self._log: TextIO | None = None

    @contextmanager
    def copied_to(self, log: TextIO) -> Iterator[None]:
        """Copy every line to `log` for as long as this lasts."""
        self._log = log
        try:
            yield
        finally:
            self._log = None
            with suppress(OSError):  # `say` has reported that the disk is full
                log.close()

    def say(self, line: str, style: str | None = None) -> None:
        """One line (or several) for the person and the log."""
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
        """A line that stands out."""
        self.say(line, style="bold")

    def remark(self, line: str) -> None:
        """What is said of this time only: most runs go without."""
        self.say(f"{REMARK}{line}")

    @contextmanager
    def live(self, text: str) -> Iterator[Status]:
        """A line that is redrawn while something goes on; nothing where there is no terminal."""
        with self._console.status(text, refresh_per_second=REDRAWS_PER_S) as status:
            yield status
