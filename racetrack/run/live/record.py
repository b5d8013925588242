"""Record of a live session: its events, its segments, and `actions.csv`, from which a session is
replayed."""

import csv
import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack.clock import now_ms
from racetrack.errors import UsageError
from racetrack.live.contract import Action, Message, Refused, parse_action
from racetrack.plugins import JOIN
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import RunRecord
from racetrack.workloads import load_profile
from racetrack.workloads.contract import workload_of
from racetrack.workloads.load_profile import LoadProfile

FILE = "actions.csv"
COLUMNS = ("at_ms", "segment", "action", "arguments", "by")
EVENTS = 1_000
BY_SESSION, BY_REPLAY = "session", "replay"


@dataclass(frozen=True)
class Segment:
    """The time between two actions that change the load or the services."""

    number: int
    from_ms: int
    why: str


class SessionLog:
    """Events of a session, of which the newest are kept in memory. Each action is written into
    `actions.csv`: its time (epoch ms), the number of the current segment, its name, its arguments
    as JSON, and who requested it. Any thread may call any method."""

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
        """Return the events whose numbers are above `number`, in order."""
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


@dataclass(frozen=True)
class Scheduled:
    """An action of a replay, `at_s` seconds after the load began."""

    at_s: float
    action: Action


@dataclass(frozen=True)
class LiveArguments:
    """Arguments of a session: the rate or the load profile at its beginning, and a replay."""

    per_s: int
    profile: LoadProfile | None = None
    schedule: tuple[Scheduled, ...] = ()
    replay_of: str | None = None


def read_session(folder: Path, engine: str) -> tuple[str, LiveArguments, str]:
    """Return what is needed to replay the session in a folder: the engine (or group), the
    arguments, and the workload. `engine` replaces the session's engine, unless it is empty.

    Raises:
        UsageError: the folder is not that of a session, or the actions do not suit the engine.
    """
    run = read_run(folder)
    if not (run.live and run.arguments):
        raise UsageError(f"{folder} is not the folder of a live session (`./race live`).")
    schedule = _scheduled(folder / FILE, run.live.from_ms, _names(run, engine or run.engine))
    if run.live.until_ms is not None:
        ends_s = (run.live.until_ms - run.live.from_ms) / 1000
        schedule = [scheduled for scheduled in schedule if scheduled.action.name != "end"]
        schedule.append(Scheduled(ends_s, Action("end", {}, BY_REPLAY)))
    arguments = LiveArguments(
        per_s=run.arguments.events_per_s,
        profile=load_profile.parse(run.arguments.load) if run.arguments.load else None,
        schedule=tuple(schedule),
        replay_of=run.tag,
    )
    return engine or run.engine, arguments, workload_of(run.settings)


def _names(run: RunRecord, engine: str) -> Mapping[str, str]:
    """Map each engine of the session to the engine that takes its place in the replay. A single
    engine may be replaced by another."""
    before, now = run.engine.split(JOIN), engine.split(JOIN)
    if len(before) == len(now) == 1:
        return {before[0]: now[0]}
    return {name: name for name in now if name in before}


def _scheduled(file: Path, from_ms: int, names: Mapping[str, str]) -> list[Scheduled]:
    """Return the users' actions. Actions of the session itself, such as stopping the load before
    memory runs out, are not repeated.

    Raises:
        UsageError: the file is damaged, or an action affects an engine that is not replayed.
    """
    schedule = []
    try:
        with file.open(newline="", encoding="utf-8") as rows:
            for row in csv.DictReader(rows):
                if row["by"] != BY_SESSION:
                    arguments = _renamed(json.loads(row["arguments"]), names)
                    action = parse_action(row["action"], arguments, BY_REPLAY)
                    schedule.append(Scheduled((int(row["at_ms"]) - from_ms) / 1000, action))
    except (OSError, ValueError, KeyError, TypeError, Refused) as error:
        raise UsageError(f"{file} can't be replayed: {error}.") from error
    return schedule


def _renamed(arguments: dict[str, object], names: Mapping[str, str]) -> dict[str, object]:
    target = str(arguments.get("target"))
    return {**arguments, "target": names[target]} if target in names else arguments
