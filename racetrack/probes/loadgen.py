"""Speaks with the load generator's control port: its rate, its counts, its arrivals."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, TextIO

import numpy as np

from racetrack.errors import RacetrackError
from racetrack.probes.curves import CurvesFile
from racetrack.probes.thread import Probe
from racetrack.results.folder import RunFolder

GREETING = "LOADGEN Connected."
# On a busy machine both take long; that is no reason to end a run.
ANSWER_WITHIN_S = 30.0
SETTLED_WITHIN_S = 60.0
ASK_EVERY_S = 0.1


class LoadgenError(RacetrackError):
    """The load generator did not answer as it should."""


class Control:
    """One conversation with the load generator, a line at a time."""

    def __init__(self, host: str, port: int, say: Callable[[str], None] | None = None) -> None:
        self._say = say or (lambda _line: None)
        try:
            self._socket = socket.create_connection((host, port), timeout=ANSWER_WITHIN_S)
        except OSError as error:
            raise LoadgenError(
                f"The load generator does not answer on {host}:{port}: {error}."
                " Its log is stack/loadgen.log."
            ) from error
        self._lines = self._socket.makefile("r", encoding="utf-8", newline="\n")
        greeting = self.read()
        if greeting != GREETING:
            raise LoadgenError(f"{host}:{port} greets with {greeting!r}: not a load generator.")

    def __enter__(self) -> "Control":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the conversation; a `read` in another thread ends with a LoadgenError."""
        with contextlib.suppress(OSError):  # it may have gone first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._lines.close()

    def ask(self, command: str, *, quietly: bool = False) -> str:
        """Send one command; the line that answers it. Quietly: the dialogue is not said.

        Raises:
            LoadgenError: no answer in time, the connection ended, or the answer is an error.
        """
        if not quietly:
            self._say(f"> {command}")
        try:
            self._socket.sendall(f"{command}\n".encode())
        except OSError as error:
            raise LoadgenError(f"The load generator went away: {error}.") from error
        answer = self.read()
        if not quietly:
            self._say(f"< {answer}")
        if answer.lower().startswith("error"):
            raise LoadgenError(f"The load generator refused {command!r}: {answer}")
        return answer

    def pause(self) -> dict[str, float]:
        """No more of anything; the rates until now, per second, as `resume` takes them."""
        rates = {kind: counts["rate"] for kind, counts in self._counts().items()}
        pageviews, *sources = rates
        # All but the first are off as a rule, and then the dialogue has nothing to say of them.
        others = [kind for kind in sources[1:] if rates[kind]]
        for kind in (*others, *sources[:1], pageviews):
            self.ask(f"set {kind}_per_second 0")
        return rates

    def resume(self, rates: Mapping[str, float]) -> None:
        """Go on at these rates."""
        for kind, rate in rates.items():
            if rate:
                self.ask(f"set {kind}_per_second {rate}")

    def settled_counts(self) -> dict[str, list[int]]:
        """The pageview counts of a generator that has been paused, once all that is due has been
        handed over and has left its Kafka client, or is in MySQL: `due`, `handed`, `refused`, by
        partition.

        Raises:
            LoadgenError: that took more than SETTLED_WITHIN_S.
        """
        give_up = time.monotonic() + SETTLED_WITHIN_S
        counts, before = self._counts(), None
        # A new rate takes up to 50 ms to hold, so two looks have to agree.
        while (due := {kind: counts[kind]["due"] for kind in counts}) != before or _behind(counts):
            if time.monotonic() > give_up:
                raise LoadgenError(
                    f"The load generator is {_behind(counts)} behind and did not catch up within"
                    f" {SETTLED_WITHIN_S:.0f} s of being paused."
                )
            time.sleep(ASK_EVERY_S)
            before, counts = due, self._counts()
        self.ask("flush")
        pageviews: dict[str, list[int]] = self._counts()["pageviews"]
        return pageviews

    def _counts(self) -> dict[str, dict[str, Any]]:
        """What it counts by kind: pageviews first, then what the workload changes."""
        stats = self.stats(quietly=True)
        return {kind: of for kind, of in stats.items() if isinstance(of, dict)}

    def stats(self, *, quietly: bool = False) -> dict[str, Any]:
        """Its counts so far, with the keys that `loadgen/stats.py` gives them."""
        stats: dict[str, Any] = json.loads(self.ask("stats", quietly=quietly))
        return stats

    def read(self) -> str:
        """The next line, without its end.

        Raises:
            LoadgenError: none came in time, or the connection ended.
        """
        try:
            line = self._lines.readline()
        except OSError as error:
            raise LoadgenError(f"The load generator does not answer: {error}.") from error
        if not line.endswith("\n"):
            raise LoadgenError("The load generator closed the connection.")
        return line.rstrip("\r\n")


def _behind(counts: dict[str, dict[str, Any]]) -> str:
    """How many of what is due are neither done nor refused; empty if none are. More than is due may
    have been handed over, which waits for nothing: a worker was killed after it had handed over a
    batch and before it noted how far it had come, so that its successor did so again; or one heard
    of a lower rate only after that held."""
    waiting = {
        kind: np.subtract(of["due"], of["handed" if kind == "pageviews" else "done"])
        - np.asarray(of["refused"])
        for kind, of in counts.items()
    }
    left = {kind: int(np.maximum(count, 0).sum()) for kind, count in waiting.items()}
    return ", ".join(f"{count:,} {kind}" for kind, count in left.items() if count)


class ArrivalsProbe(Probe):
    """Follows the generator's `watch`, a line every 100 ms: `arrivals.csv` with
    `at_ms,due,handed_over` over all partitions, the curves `due` and `handed_over`, and, with
    tracer events, `tracer_events.csv` with `at_ms,newest,due_ms,committed`: the number of the
    newest (1 for the first), when it was due, and how many are in the database."""

    name = "What the load generator offers"

    def __init__(self, host: str, port: int, folder: RunFolder, curves: CurvesFile) -> None:
        super().__init__()
        self.due = 0  # over all partitions, as last heard
        self._control = Control(host, port)
        self._curves = curves
        self._csv = folder.open_for_lines("arrivals.csv")
        self._marks: TextIO | None = None
        self._folder = folder
        self._stats: dict[str, Any] = {"now_ms": 0}
        self._told = threading.Condition()

    def run(self) -> None:
        """Watch until stopped."""
        with self._csv, ExitStack() as closing:
            self._csv.write("at_ms,due,handed_over\n")
            line = self._control.ask("watch")
            while not self.stopping.is_set():
                self._take(json.loads(line), closing)
                line = self._control.read()

    def stop(self) -> None:
        """Leave the generator and end the thread."""
        self.stopping.set()
        self._control.close()
        super().stop()

    @property
    def counts(self) -> dict[str, Any]:
        """What the generator said last, as `Control.stats` gives it."""
        with self._told:
            return self._stats

    def counts_after(self, at_ms: int, stopping: threading.Event) -> dict[str, Any] | None:
        """What the generator said first of a time after this one, as `Control.stats` gives it; None
        if it said nothing more before `stopping` was set."""
        with self._told:
            while self._stats["now_ms"] <= at_ms:
                if stopping.is_set():
                    return None
                self._told.wait(ASK_EVERY_S)
            return self._stats

    def _take(self, stats: dict[str, Any], closing: ExitStack) -> None:
        with self._told:
            self._stats = stats
            self._told.notify_all()
        at_ms, pageviews = stats["now_ms"], stats["pageviews"]
        due, handed_over = pageviews["due"], pageviews["handed"]
        self.due = sum(due)
        self._csv.write(f"{at_ms},{self.due},{sum(handed_over)}\n")
        self._curves.write(at_ms, "due", enumerate(due))
        self._curves.write(at_ms, "handed_over", enumerate(handed_over))
        if (marks := stats.get("tracer_events")) and marks["newest"][0]:
            self._take_marks(at_ms, marks, closing)

    def _take_marks(self, at_ms: int, marks: dict[str, Any], closing: ExitStack) -> None:
        """The file is there from the first mark on."""
        if not self._marks:
            self._marks = closing.enter_context(self._folder.open_for_lines("tracer_events.csv"))
            self._marks.write("at_ms,newest,due_ms,committed\n")
        newest, due_ms = marks["newest"]
        self._marks.write(f"{at_ms},{newest},{due_ms},{marks['done']}\n")
