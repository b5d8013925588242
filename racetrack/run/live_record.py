"""Record of a live session: its events, its segments, and `actions.csv`."""

import csv
import json
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from racetrack.clock import now_ms
from racetrack.live.actions import Action
from racetrack.live.contract import Message
from racetrack.results.folder import RunFolder

FILE = "actions.csv"
COLUMNS = ("at_ms", "segment", "action", "arguments", "by")
EVENTS = 1_000
BY_SESSION = "session"


@dataclass(frozen=True)
class Segment:
    """The time between two actions that change the load or the services."""

    number: int
    from_ms: int
    why: str


class SessionLog:
    """Events of a session, of which the newest are kept in memory. Each action is written into
    `actions.csv`: epoch ms, the segment that it begins, its name, its arguments as JSON, and who
    requested it. Any thread may call any method."""

    def __init__(self, folder: RunFolder) -> None:
        self._lock = threading.Lock()
        self._events: deque[Message] = deque(maxlen=EVENTS)
        self._number = 0
        self.actions = 0
        self.segment = Segment(0, now_ms(), "the session began")
        self._file = folder.open_for_lines(FILE)
        self._csv = csv.writer(self._file, lineterminator="\n")
        self._csv.writerow(COLUMNS)

    def add(self, kind: str, text: str, target: str = "", by: str = BY_SESSION) -> None:
        """Add an event."""
        with self._lock:
            self._add(now_ms(), kind, text, target, by)

    def record(self, action: Action, text: str, *, begins_segment: bool) -> Segment:
        """Record an action that has been carried out; return the current segment."""
        with self._lock:
            at_ms = now_ms()
            if begins_segment:
                self.segment = Segment(self.segment.number + 1, at_ms, text)
            self.actions += 1
            arguments = json.dumps(dict(action.arguments))
            row = (at_ms, self.segment.number, action.name, arguments, action.by)
            self._csv.writerow(row)
            target = str(action.arguments.get("target", ""))
            self._add(at_ms, action.name, text, target, action.by)
            return self.segment

    def after(self, number: int) -> Sequence[Message]:
        """Return the events with greater numbers, in order."""
        with self._lock:
            return [event for event in self._events if event["number"] > number]

    def close(self) -> None:
        """Close the file; nothing may be recorded afterwards."""
        self._file.close()

    def _add(self, at_ms: int, kind: str, text: str, target: str, by: str) -> None:
        self._number += 1
        self._events.append(
            {
                "number": self._number,
                "at_ms": at_ms,
                "kind": kind,
                "target": target,
                "text": text,
                "segment": self.segment.number,
                "by": by,
            }
        )
