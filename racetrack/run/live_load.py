"""Load of a live session: rates and profiles, the segments that their changes begin, and the stop
before memory runs out."""

import time
from collections.abc import Collection

from racetrack.live.actions import Action, Refused
from racetrack.results.search import PAGEVIEWS
from racetrack.run.live_memory import MemoryWatch
from racetrack.run.live_messages import NOT_EVENTS, TRACERS, Now, counts_of
from racetrack.run.live_record import BY_SESSION, SessionLog
from racetrack.run.live_verdict import VerdictWatch
from racetrack.run.session import Session
from racetrack.stack.contract import Say
from racetrack.workloads import load_profile
from racetrack.workloads.load_profile import NEVER_S

PROFILE_CHANGES = "The load profile changes the rate."


class LiveLoad:
    """Changes the load in the main thread, records each change, and lets the verdicts begin
    anew."""

    def __init__(
        self,
        now: Now,
        session: Session,
        log: SessionLog,
        verdicts: Collection[VerdictWatch],
        memory: MemoryWatch,
        say: Say,
    ) -> None:
        self._now, self._session, self._log = now, session, log
        self._verdicts, self._memory, self._say = verdicts, memory, say
        self._profile_from_s = 0.0
        self._warned: set[str] = set()

    def set_rate(self, action: Action, per_s: int) -> None:
        """Set the rate of the main topic. A profile ends."""
        self._require_memory(per_s)
        before = counts_of(self._session).get(PAGEVIEWS, {}).get("rate", 0)
        self._session.end_load()
        self._now.profile = None
        self._session.offer(per_s)
        self.begin_segment(action, f"rate {before:,}/s → {per_s:,}/s", per_s)

    def set_profile(self, action: Action, text: str) -> None:
        """Let a load profile drive the rate."""
        self._require_memory(1)
        profile = load_profile.parse(text)
        if not profile.duration_s:
            self.set_rate(action, profile.rate_at(0.0))
            return
        self._session.begin_load(profile, f"load_{self._log.segment.number + 1}.csv")
        self._now.profile, self._profile_from_s = profile, time.monotonic()
        self.begin_segment(action, f"load {profile}")

    def set_kind(self, action: Action, kind: str, per_s: int) -> None:
        """Set the rate of another kind of events."""
        counts = counts_of(self._session)
        if kind not in counts or kind in NOT_EVENTS:
            there = ", ".join(name for name in counts if name not in NOT_EVENTS)
            raise Refused(409, f"The workload has no {kind}; it has {there or 'no other events'}.")
        self._require_memory(per_s)
        before = counts[kind]["rate"]
        self._session.offer(per_s, kind)
        self.begin_segment(action, f"{kind} {before:,}/s → {per_s:,}/s")

    def set_reads(self, action: Action, per_s: int) -> None:
        """Set the rate at which the views of each engine are read."""
        before = self._session.reads_per_s
        self._session.set_reads(per_s)
        self.begin_segment(action, f"reads {before:g}/s → {per_s:,}/s")

    def _require_memory(self, per_s: int) -> None:
        if per_s and self._now.load_stopped:
            raise Refused(409, self._now.load_stopped)

    def begin_segment(self, action: Action, text: str, per_s: int | None = None) -> None:
        """Record an action, and let the verdicts begin anew. `per_s` is the rate, if the action has
        just changed it."""
        segment = self._log.record(action, text, begins_segment=True)
        rate = self._current_rate() if per_s is None else per_s
        for verdict in self._verdicts:
            verdict.begin(segment.from_ms, rate, PROFILE_CHANGES if self._now.profile else "")
        self._say(f"  {text}")

    def _current_rate(self) -> int:
        return int(counts_of(self._session).get(PAGEVIEWS, {}).get("rate", 0))

    def end_profile_if_over(self) -> None:
        """Begin a segment when the load profile no longer changes the rate."""
        profile, elapsed_s = self._now.profile, time.monotonic() - self._profile_from_s
        if profile and profile.next_change_s(elapsed_s) == NEVER_S:
            self._now.profile = None
            over = Action("load", {}, BY_SESSION)
            self.begin_segment(over, f"the profile is over, at {self._current_rate():,}/s")

    def watch_memory(self) -> None:
        """Warn of memory that will run out, and stop the load before it does."""
        self._now.outlooks, self._now.unknown = self._memory.outlooks(), self._memory.unknown()
        for outlook in self._now.outlooks:
            if outlook.warns and outlook.what not in self._warned:
                self._log.add("warning", outlook.as_text())
            (self._warned.add if outlook.warns else self._warned.discard)(outlook.what)
        ending = [outlook for outlook in self._now.outlooks if outlook.is_ending]
        rates = {name: of["rate"] for name, of in counts_of(self._session).items()}
        loaded = [name for name, rate in rates.items() if rate and name != TRACERS]
        if ending and loaded:
            self._session.end_load()
            self._now.profile = None
            for name in loaded:
                self._session.offer(0, name)
            self._now.load_stopped = f"{ending[0].as_text()}: the session set the rate to 0."
            self.begin_segment(Action("rate", {"per_s": 0}, BY_SESSION), self._now.load_stopped)
            self._log.add("load_stopped", self._now.load_stopped)
        elif self._now.load_stopped and not ending:
            self._now.load_stopped = ""
