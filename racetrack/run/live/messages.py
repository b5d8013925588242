"""Messages of a live session to its pages. docs/live.md describes them."""

from collections.abc import Mapping, Sequence

from racetrack import host
from racetrack.clock import now_ms
from racetrack.live.contract import Message
from racetrack.live.series import definition, expected, layout
from racetrack.metrics import MACHINE_BUSY
from racetrack.results.figures import VerdictKind
from racetrack.results.folder import RunFolder, shown
from racetrack.run.live.figures import NONE, CurrentVerdict, VerdictWatch
from racetrack.run.live.load import RUNNING, UNCONTROLLED, Now, Outlook, counts_of
from racetrack.run.live.record import SessionLog
from racetrack.run.live.services import NEEDS, Services
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.units import BYTES_PER_GIB
from racetrack.workloads import load_profile
from racetrack.workloads.contract import TracedView, workload_in
from racetrack.workloads.load_profile import PROFILES

BUSY_PCT = 90.0
OTHER_KINDS_MOST_PER_S = 10_000
READS = "reads"  # reads of views; their rate is controlled like that of a kind of events


class Messages:
    """Makes the messages. Any thread may call any method."""

    def __init__(
        self,
        now: Now,
        stack: Stack,
        folder: RunFolder,
        session: Session,
        log: SessionLog,
        services: Services,
        verdicts: Mapping[str, VerdictWatch],
    ) -> None:
        self.now = now
        self._stack, self._folder, self._session = stack, folder, session
        self._log, self._services, self._verdicts = log, services, verdicts
        self._machine, self._began_ms = host.describe(), now_ms()

    def hello(self, history: Message) -> Message:
        """Return the message for a page that has just been opened."""
        counts = counts_of(self._session)
        return {
            "session": self._folder.tag,
            "now_ms": now_ms(),
            "started_ms": self._began_ms,
            "folder": shown(self._folder.path),
            "runtime": self._stack.runtime,
            "workload": self._stack.settings.workload,
            "machine": str(self._machine),
            "cores": self._machine.cores,
            "engines": [
                {"name": run.engine.name, "title": run.engine.title, "services": run.services}
                for run in self._session.runs
            ],
            "services": self._service_list(),
            "series": self._series(history["values"]),
            **layout(),
            "kinds": [
                {"name": name, "per_s": count["rate"], "most_per_s": OTHER_KINDS_MOST_PER_S}
                for name, count in counts.items()
                if name not in UNCONTROLLED
            ],
            "profiles": [
                {"name": profile.name, "form": profile.form, "example": profile.example}
                for profile in PROFILES
                if profile is not load_profile.Recorded
            ],
            "history": history,
            "events": self._log.after(0),
            "state": self.state(),
        }

    def state(self) -> Message:
        """Return the state as of now."""
        segment, at_ms = self._log.segment, now_ms()
        judged_s = (at_ms - segment.from_ms) / 1000
        return {
            "now_ms": at_ms,
            "elapsed_s": round((at_ms - self._began_ms) / 1000, 1),
            "phase": self.now.phase,
            "rates": {
                **{name: count["rate"] for name, count in counts_of(self._session).items()},
                READS: self._session.reads_per_s,
            },
            "load": str(self.now.profile) if self.now.profile else None,
            "load_stopped": self.now.load_stopped,
            "segment": {"number": segment.number, "from_ms": segment.from_ms, "why": segment.why},
            "in_the_way": bottleneck(
                {name: verdict.now for name, verdict in self._verdicts.items()},
                self.now.figures.get(MACHINE_BUSY.key),
            ),
            "engines": [
                self._engine_state(run.engine.name, judged_s) for run in self._session.runs
            ],
            "services": [
                {"name": name, "status": status}
                for name, status in self._services.status.items()
                if name not in self._verdicts
            ],
            "memory": [
                *(_memory(outlook) for outlook in self.now.outlooks),
                *({"text": text, "warn": False} for text in self.now.unknown),
            ],
            "controls": self._controls(),
            "actions": self._log.actions,
        }

    def _service_list(self) -> list[Message]:
        owners = self._owners
        return [{"name": name, "engine": owners.get(name)} for name in self._session.services]

    @property
    def _owners(self) -> dict[str, str]:
        """Engines by service."""
        return {name: run.engine.name for run in self._session.runs for name in run.services}

    def _series(self, known: Mapping[str, object]) -> list[Message]:
        """Return the definition of each series that has been or will be measured."""
        views = [view.name for view in self._traced_views()]
        by_engine = {run.engine.name: views for run in self._session.runs}
        series = [*expected(by_engine, self._session.services), *known]
        return [definition(series_id, self._owners) for series_id in dict.fromkeys(series)]

    def _traced_views(self) -> Sequence[TracedView]:
        settings = self._stack.settings
        traced = settings.tracer_events_per_second
        return workload_in(settings).with_tracer_rows if traced else ()

    def _engine_state(self, name: str, judged_s: float) -> Message:
        verdict = self._verdicts[name].now
        return {
            "name": name,
            "status": self._services.status[name],
            "text": self._services.texts.get(name, ""),
            "verdict": {
                "kind": verdict.kind,
                "text": verdict.text,
                "judged_s": 0.0 if verdict.kind == NONE else round(judged_s, 1),
            },
        }

    def _controls(self) -> dict[str, str]:
        starting = "" if self.now.phase == RUNNING else f"The session is {self.now.phase}."
        counts = counts_of(self._session)
        events = {
            name: starting or self.now.load_stopped for name in counts if name not in UNCONTROLLED
        }
        workload = self._stack.settings.workload
        for kind in ("purchases", "updates", "deletes"):
            events.setdefault(kind, starting or f"The workload {workload} has no {kind}.")
        services = {
            f"{how}/{target}": starting or self._services.why_not(how, target)
            for how in NEEDS
            for target in list(self._services.status)
        }
        return {
            "rate": starting or self.now.load_stopped,
            "load": starting or self.now.load_stopped,
            **events,
            READS: starting or self._services.why_no_reads(),
            "note": starting,
            "end": starting,
            **services,
        }


def bottleneck(verdicts: Mapping[str, CurrentVerdict], busy_pct: float | None) -> Message:
    """Return what keeps the engines from processing more. `verdicts` are by engine; `busy_pct` is
    the share of all cores' time that was used, None if it is unknown."""
    for kind, what in (
        (VerdictKind.GENERATOR_BOUND, "generator"),
        (VerdictKind.BROKER_BOUND, "broker"),
    ):
        for verdict in verdicts.values():
            if verdict.kind == kind:
                return {"what": what, "text": verdict.text}
    behind = [name for name, verdict in verdicts.items() if verdict.kind == VerdictKind.FELL_BEHIND]
    fell_behind = f"{' and '.join(behind)} fell behind" if behind else ""
    if busy_pct and busy_pct > BUSY_PCT:
        text = f"{busy_pct:.0f} % of all cores are busy"
        return {"what": "cores", "text": f"{text}, and {fell_behind}." if behind else f"{text}."}
    if behind:
        return {"what": "engine", "text": f"{fell_behind}, with cores to spare."}
    return {"what": "nothing", "text": ""}


def _memory(outlook: Outlook) -> Message:
    return {
        "what": outlook.what,
        "left_s": None if outlook.left_s is None else round(outlook.left_s),
        "used_gib": round(outlook.used / BYTES_PER_GIB, 3),
        "limit_gib": round(outlook.limit / BYTES_PER_GIB, 3),
        "warn": outlook.warns,
        "text": outlook.as_text(),
    }
