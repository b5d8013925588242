"""Client of the load generator's control port: rates, load profiles, counts, arrivals."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from racetrack.clock import attempts, now_ms
from racetrack.errors import RacetrackError
from racetrack.probes.base import CurvesFile, Probe
from racetrack.probes.broker import TopicOffsets
from racetrack.results.folder import RunFolder
from racetrack.results.run import LoadLog
from racetrack.workloads.load_profile import NEVER_S, LoadProfile

GREETING = "LOADGEN Connected."
# Generous, because a busy machine must not end a run.
ANSWER_WITHIN_S = 30.0
SETTLED_WITHIN_S = 60.0
CHECK_EVERY_S = 0.1


class LoadgenError(RacetrackError):
    """The load generator failed, or its answer is invalid."""


class Control:
    """One connection to the load generator's control port. `say` is called with each command and
    each answer, to show them to the user."""

    def __init__(
        self,
        host: str,
        port: int,
        say: Callable[[str], None] | None = None,
        *,
        answer_within_s: float = ANSWER_WITHIN_S,
        settled_within_s: float = SETTLED_WITHIN_S,
    ) -> None:
        self._say = say or (lambda _line: None)
        self._settled_within_s = settled_within_s
        try:
            self._socket = socket.create_connection((host, port), timeout=answer_within_s)
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
        """Close the connection; a `read` in another thread ends with a LoadgenError."""
        with contextlib.suppress(OSError):  # the generator may have closed it first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._lines.close()

    def ask(self, command: str, *, quietly: bool = False) -> str:
        """Send one command and return the answer, one line. With `quietly`, don't show them.

        Raises:
            LoadgenError: no answer in time, the connection ended, or the answer is an error.
        """
        if not quietly:
            self._say(f"> {command}")
        try:
            self._socket.sendall(f"{command}\n".encode())
        except OSError as error:
            raise LoadgenError(f"The load generator closed the connection: {error}.") from error
        answer = self.read()
        if not quietly:
            self._say(f"< {answer}")
        if answer.lower().startswith("error"):
            raise LoadgenError(f"The load generator refused {command!r}: {answer}")
        return answer

    def pause(self) -> dict[str, float]:
        """Set all rates to zero. Return the previous rates, per second, as `resume` expects
        them."""
        rates = {kind: counts["rate"] for kind, counts in self._counts().items()}
        events, *sources = rates
        # Skip kinds of events whose rate is zero already, to keep the output short.
        others = [kind for kind in sources[1:] if rates[kind]]
        for kind in (*others, *sources[:1], events):
            self.ask(f"set {kind}_per_second 0")
        return rates

    def resume(self, rates: Mapping[str, float]) -> None:
        """Set these rates again."""
        for kind, rate in rates.items():
            if rate:
                self.ask(f"set {kind}_per_second {rate}")

    def settled_counts(self) -> dict[str, list[int]]:
        """Wait until a paused generator has sent all due events to the broker and to MySQL. Return
        its event counts `due`, `handed` and `refused` by partition.

        Raises:
            LoadgenError: the generator took longer than `settled_within_s`.
        """
        before = None
        for _ in attempts(self._settled_within_s, CHECK_EVERY_S):
            counts = self._counts()
            due = {kind: counts[kind]["due"] for kind in counts}
            # A new rate takes up to 50 ms to apply, so two samples have to agree.
            if due == before and not _behind(counts):
                break
            before = due
        else:
            raise LoadgenError(
                f"The load generator is {_behind(counts)} behind and did not catch up within"
                f" {self._settled_within_s:.0f} s of being paused."
            )
        self.ask("flush")
        events: dict[str, list[int]] = self._counts()["events"]
        return events

    def _counts(self) -> dict[str, dict[str, Any]]:
        """Return the counts by kind of event: events first, then changes of MySQL's tables."""
        stats = self.stats(quietly=True)
        return {kind: count for kind, count in stats.items() if isinstance(count, dict)}

    def stats(self, *, quietly: bool = False) -> dict[str, Any]:
        """Return all counts so far, with the keys of `loadgen/stats.py`."""
        stats: dict[str, Any] = json.loads(self.ask("stats", quietly=quietly))
        return stats

    def read(self) -> str:
        """Return the next line, without its end.

        Raises:
            LoadgenError: no line came in time, or the connection ended.
        """
        try:
            line = self._lines.readline()
        except OSError as error:
            raise LoadgenError(f"The load generator does not answer: {error}.") from error
        if not line.endswith("\n"):
            raise LoadgenError("The load generator closed the connection.")
        return line.rstrip("\r\n")


def _behind(counts: dict[str, dict[str, Any]]) -> str:
    """Return a text with the number of due events that are neither sent nor refused; empty if none.

    Negative differences count as zero. More events than are due may have been sent if a worker was
    killed after it had sent a batch but not yet recorded it, or before a lower rate reached it."""
    waiting = {
        kind: np.subtract(count["due"], count["handed" if kind == "events" else "done"])
        - np.asarray(count["refused"])
        for kind, count in counts.items()
    }
    left = {kind: int(np.maximum(count, 0).sum()) for kind, count in waiting.items()}
    return ", ".join(f"{count:,} {kind}" for kind, count in left.items() if count)


class ArrivalsProbe(Probe):
    """Reads the output of the generator's `watch` command, a line every 100 ms, and writes:

    - `arrivals.csv`: `at_ms,due,handed_over`, summed over all partitions;
    - the curves `due` and `handed_over`;
    - with tracer events, `tracer_events.csv`: `at_ms,newest,due_ms,committed`, where `newest` is
      the number of the newest tracer event (from 1), `due_ms` its due time, and `committed` how
      many are in the database.
    """

    name = "The load generator's counts"

    def __init__(self, host: str, port: int, folder: RunFolder, curves: CurvesFile) -> None:
        super().__init__()
        # Latest count over all partitions, without refused events, which no engine will count.
        self.due = 0
        self._control = Control(host, port)
        self._curves = curves
        self._csv = folder.open_for_lines("arrivals.csv")
        self._tracer_csv: TextIO | None = None
        self._folder = folder
        self._stats: dict[str, Any] = {"now_ms": 0}
        self._updated = threading.Condition()

    def run(self) -> None:
        """Read until stopped."""
        with self._csv, ExitStack() as closing:
            self._csv.write("at_ms,due,handed_over\n")
            line = self._control.ask("watch")
            while not self.stopping.is_set():
                self._take(json.loads(line), closing)
                line = self._control.read()

    def stop(self) -> None:
        """Close the connection and end the thread."""
        self.stopping.set()
        self._control.close()
        super().stop()

    @property
    def counts(self) -> dict[str, Any]:
        """Latest counts, in the format of `Control.stats`."""
        with self._updated:
            return self._stats

    def counts_after(self, at_ms: int, stopping: threading.Event) -> dict[str, Any] | None:
        """Wait for counts that are newer than `at_ms` and return them, in the format of
        `Control.stats`; None if `stopping` is set first."""
        with self._updated:
            while self._stats["now_ms"] <= at_ms:
                if stopping.is_set():
                    return None
                self._updated.wait(CHECK_EVERY_S)
            return self._stats

    def _take(self, stats: dict[str, Any], closing: ExitStack) -> None:
        with self._updated:
            self._stats = stats
            self._updated.notify_all()
        at_ms, events = stats["now_ms"], stats["events"]
        due, handed_over = events["due"], events["handed"]
        self.due = sum(due) - sum(events["refused"])
        self._csv.write(f"{at_ms},{sum(due)},{sum(handed_over)}\n")
        self._curves.write(at_ms, "due", enumerate(due))
        self._curves.write(at_ms, "handed_over", enumerate(handed_over))
        if (tracer := stats.get("tracer_events")) and tracer["newest"][0]:
            self._write_tracer_events(at_ms, tracer, closing)

    def _write_tracer_events(self, at_ms: int, tracer: dict[str, Any], closing: ExitStack) -> None:
        """Write a row of tracer events. The first row creates the file."""
        if not self._tracer_csv:
            self._tracer_csv = closing.enter_context(
                self._folder.open_for_lines("tracer_events.csv")
            )
            self._tracer_csv.write("at_ms,newest,due_ms,committed\n")
        newest, due_ms = tracer["newest"]
        self._tracer_csv.write(f"{at_ms},{newest},{due_ms},{tracer['done']}\n")


RECEIVED_WITHIN_S = 5.0


@dataclass(frozen=True)
class Settled:
    """Counts of events by partition while the generator is paused and none is in flight."""

    since_s: float  # when the generator was paused, by `time.monotonic`
    handed_over: Sequence[int]
    refused: Sequence[int]
    end_offsets: Sequence[int]  # differ from `handed_over` if events were lost


def settle(control: Control, broker: TopicOffsets) -> Settled:
    """Wait until a generator that has just been paused has sent everything, then for at most
    RECEIVED_WITHIN_S until the broker has received everything.

    Raises:
        LoadgenError: the generator did not finish in time.
        OffsetsError: the broker does not answer.
    """
    since_s = time.monotonic()
    counts = control.settled_counts()
    handed_over = counts["handed"]
    end_offsets = broker.end_offsets_reaching(handed_over, RECEIVED_WITHIN_S)
    return Settled(since_s, handed_over, counts["refused"], end_offsets)


LOAD_CSV, LOAD_HEADER = "load.csv", "at_ms,events_per_s\n"


class LoadDriver(Probe):
    """Sets each rate of a profile at its time after `start`. Writes each rate and the time at which
    it was set (epoch milliseconds) into `load.csv` or another file."""

    name = "The load profile"

    def __init__(
        self,
        profile: LoadProfile,
        offer: Callable[[int], None],
        folder: RunFolder,
        file: str = LOAD_CSV,
    ) -> None:
        super().__init__()
        self._file = file
        self._profile, self._offer, self._folder = profile, offer, folder
        self._began_s = 0.0
        self._log: LoadLog | None = None

    def start(self) -> None:
        """Start the thread. The times of the profile count from now."""
        self._began_s = time.monotonic()
        self._log = LoadLog(profile=str(self._profile), from_ms=now_ms())
        super().start()

    @property
    def is_over(self) -> bool:
        """True if the duration of the profile has passed."""
        return time.monotonic() - self._began_s >= self._profile.duration_s

    def record(self) -> LoadLog | None:
        """Return the record of the load so far, for `run.json`; None before the start."""
        return self._log.model_copy() if self._log else None

    def run(self) -> None:
        """Set the rates until stopped."""
        at_s = 0.0
        with self._folder.open_for_lines(self._file) as file:
            file.write(LOAD_HEADER)
            while True:
                rate = self._profile.rate_until_next_change(at_s)
                self._offer(rate)
                set_ms = now_ms()
                file.write(f"{set_ms},{rate}\n")
                self._note_peak(at_s, set_ms)
                at_s = self._profile.next_change_s(at_s)
                if at_s == NEVER_S:
                    return
                if self.stopping.wait(max(0.0, self._began_s + at_s - time.monotonic())):
                    return

    def _note_peak(self, at_s: float, set_ms: int) -> None:
        """Record `set_ms` if the rate that was set at `at_s` begins or ends the profile's peak."""
        if self._log and (peak_s := self._profile.peak_s):
            if at_s == peak_s[0]:
                self._log.peak_from_ms = set_ms
            if at_s == peak_s[1]:
                self._log.peak_until_ms = set_ms
