"""A live session without a stack: two engines whose figures follow the rate that was set."""

import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from racetrack import metrics
from racetrack.clock import now_ms
from racetrack.live.contract import Action
from racetrack.live.history import History
from racetrack.live.series import COUNT, definition, layout, series_id

ENGINES = ("dh", "pg")
OWNERS = {"deephaven": "dh", "postgres": "pg"}
NEEDS = {"pause": "running", "resume": "paused", "kill": "running", "restart": "killed"}
SERVICES = ("deephaven", "postgres", "broker", "loadgen", "mysql")
VERDICTS: dict[str, dict[str, Any]] = {
    name: {"kind": kind, "text": f"judged: {kind}", "judged_s": 12.0}
    for name, kind in (("dh", "kept up"), ("pg", "undecided"))
}


class FakeSession:
    """A fake of `racetrack.live.contract.LiveSession`. A killed engine counts nothing."""

    def __init__(self) -> None:
        self.acted: list[Action] = []
        self.samples = 0
        self.rates: dict[str, int] = {"events": 5_000, "purchases": 10, "reads": 0}
        self.status = dict.fromkeys((*ENGINES, "broker", "mysql"), "running")
        self._load: str | None = None
        self._events: list[dict[str, Any]] = []
        self._ended: dict[str, Any] | None = None
        self._segment = {"number": 1, "from_ms": self.clock_ms(), "why": "the session began"}
        self._history, self._began_ms = History(), self.clock_ms()
        self._lock = threading.Lock()
        self.tell("ready", "all views are there")

    def clock_ms(self) -> int:
        return now_ms()

    def tell(self, kind: str, text: str, target: str = "", by: str = "session") -> None:
        """Add an event."""
        number = len(self._events) + 1
        segment = self._segment["number"]
        event = {"number": number, "at_ms": self.clock_ms(), "kind": kind, "target": target}
        self._events.append({**event, "text": text, "segment": segment, "by": by})

    def hello(self) -> dict[str, Any]:
        with self._lock:
            history = self._history.as_columns()
        return {
            "session": "2026.11.26.07.30.00_UTC_dh+pg_live",
            "now_ms": self.clock_ms(),
            "started_ms": self._began_ms,
            "folder": "logs/fake",
            "runtime": "native",
            "workload": "shop",
            "machine": "a fake machine",
            "cores": 2,
            "engines": [
                {"name": "dh", "title": "Deephaven", "services": ["deephaven"]},
                {"name": "pg", "title": "PostgreSQL", "services": ["postgres"]},
            ],
            "services": [
                {"name": "deephaven", "engine": "dh"},
                {"name": "postgres", "engine": "pg"},
                *({"name": name, "engine": None} for name in SERVICES[2:]),
            ],
            "series": [definition(name, OWNERS) for name in self._values(0)],
            **layout(),
            "kinds": [
                {"name": name, "per_s": self.rates.get(name, 0), "most_per_s": 10_000}
                for name in ("purchases", "updates", "reads")
            ],
            "profiles": [
                {"name": "spike", "form": "BASE PEAK DURATION", "example": "spike 5k 50k 10s"}
            ],
            "history": history,
            "events": list(self._events),
            "state": self.state(),
        }

    def sample(self) -> dict[str, Any]:
        self.samples += 1
        at_ms = self.clock_ms()
        values = self._values(at_ms)
        with self._lock:
            self._history.add(at_ms, values)
        return {"at_ms": at_ms, "values": values}

    def latest(self) -> Mapping[str, float | None]:
        return self._values(self.clock_ms())

    def _values(self, at_ms: int) -> dict[str, float | None]:
        rate = self.rates["events"]
        wave = 1 + 0.2 * math.sin((at_ms - self._began_ms) / 7000)
        values: dict[str, float | None] = {metrics.OFFERED.key: rate}
        values[metrics.PUBLISHED.key] = rate * wave
        for name, lag_ms in zip(ENGINES, (300.0, 40.0), strict=True):
            runs = self.status[name] == "running"
            values[series_id(metrics.COUNTED, name)] = rate * wave if runs else 0.0
            values[series_id(metrics.LAG, name, COUNT)] = lag_ms * wave if runs else 9_000.0
            values[series_id(metrics.LAG, name, "item_summary.pageviews")] = 2 * lag_ms * wave
            values[series_id(metrics.BACKLOG, name)] = rate * lag_ms / 1000
            values[series_id(metrics.READ_TIME, name)] = 12.0 if self.rates["reads"] else None
        for number, name in enumerate(SERVICES, start=1):
            values[series_id(metrics.CPU, name)] = 10.0 * number * wave
            values[series_id(metrics.RSS, name)] = 0.25 * number * wave
        noise: dict[str, float | None] = {
            metrics.STEAL.key: 0.0,
            metrics.FOREIGN_CPU.key: 15.0 * wave,
            metrics.BROWSER_CPU.key: 22.0,
            metrics.HARNESS_CPU.key: 4.0,
            metrics.MACHINE_BUSY.key: 40.0,
        }
        return {**values, **noise}

    def state(self) -> dict[str, Any]:
        controls = {
            **dict.fromkeys(("rate", "load", "purchases", "reads", "note", "end"), ""),
            "updates": "The workload shop has no updates.",
        }
        for target, status in self.status.items():
            for how, needs in NEEDS.items():
                why = "" if status == needs else f"{target} is {status}."
                controls[f"{how}/{target}"] = why
        return {
            "now_ms": self.clock_ms(),
            "elapsed_s": 61.2,
            "phase": "running",
            "rates": dict(self.rates),
            "load": self._load,
            "load_stopped": "",
            "segment": dict(self._segment),
            "in_the_way": {"what": "nothing", "text": ""},
            "engines": [
                {"name": name, "status": self.status[name], "text": "", "verdict": verdict}
                for name, verdict in VERDICTS.items()
            ],
            "services": [
                {"name": name, "status": status}
                for name, status in self.status.items()
                if name not in ENGINES
            ],
            "memory": [
                {
                    "what": "machine",
                    "left_s": 240,
                    "used_gib": 3.0,
                    "limit_gib": 8.0,
                    "warn": True,
                    "text": "machine: 3.00 of 8.00 GiB used, lasts 4 min at this rate",
                }
            ],
            "controls": controls,
            "actions": len(self.acted),
        }

    def events_after(self, number: int) -> Sequence[dict[str, Any]]:
        return self._events[number:]

    def end(self) -> dict[str, Any] | None:
        return self._ended

    def act(self, action: Action) -> Future[None]:
        self.acted.append(action)
        given, done = action.arguments, Future[None]()
        text, target = f"{action.name} {' '.join(map(str, given.values()))}", ""
        if action.name == "rate":
            self.rates["events"], self._load = int(given["per_s"]), None
        elif action.name == "load":
            self._load = str(given["profile"])
        elif action.name == "events":
            self.rates[str(given["kind"])] = int(given["per_s"])
        elif "target" in given:
            target = str(given["target"])
            states = {"pause": "paused", "kill": "killed"}
            self.status[target] = states.get(action.name, "running")
        if action.name not in {"note", "end"}:
            number = int(str(self._segment["number"])) + 1
            self._segment = {"number": number, "from_ms": self.clock_ms(), "why": text}
        self.tell(action.name, text, target, "user")
        if action.name == "end":
            self._ended = {"text": "Ended by the user.", "folder": "logs/fake"}
        done.set_result(None)
        return done
