"""Tests of a live session: its actions are executed and recorded, and begin new segments of the
recording; the session ends in good order."""

import csv
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from racetrack.analysis import raw, table
from racetrack.clock import now_ms
from racetrack.config import load
from racetrack.engines.group import EngineGroup
from racetrack.errors import EngineFailed, RacetrackError, UsageError
from racetrack.live.contract import Action, Refused, parse_action
from racetrack.results.folder import RunFolder, read_run
from racetrack.run.live import record, session
from racetrack.run.live.record import LiveArguments
from racetrack.run.live.session import Live
from racetrack.terminal import Guard, Screen
from tests.run.fakes import Calls, FakeEngine, FakeLoad, FakeStack, SecondEngine
from tests.waiting import wait_until

WITHIN_S = 20.0


class Control(Calls):
    """A fake control of services: it records kills, pauses and restarts, which take no time."""

    def restart(
        self, services: tuple[str, ...], engine: str | None, _stopping: object
    ) -> tuple[float, float | None]:
        self.did.append(f"restart {services}")
        return 0.1, 0.2 if engine else None


class Session(FakeLoad):
    """A fake session, with the stack, load and probes that a live session uses."""

    def __init__(self, engine: EngineGroup) -> None:
        super().__init__(purchases=10)
        common: dict[str, Any] = {"probes": [], "readers": [], "forget_views": lambda: None}
        self.runs = [
            SimpleNamespace(engine=each, services=each.services, **common)
            for each in engine.members
        ]
        self.control = Control(self.did)
        self.failed: dict[str, str] = {}
        self.broken = ""
        self.reads_per_s = 0.0
        self.services = ["manager", "worker", "other", "broker"]
        self.hears: list[Callable[..., None]] = []

    def hear_curves(self, listener: Callable[..., None]) -> None:
        self.hears.append(listener)

    def set_reads(self, per_s: float) -> None:
        self.reads_per_s = per_s

    def pause(self) -> None:
        self.rates = dict.fromkeys(self.rates, 0)

    def check_engine(self, run: SimpleNamespace) -> None:
        if why := self.failed.get(run.engine.name):
            raise EngineFailed(why)

    def check(self, but: object) -> None:
        if self.broken:
            raise RacetrackError(self.broken)


class Drive:
    """A live session that runs in a thread of the test, as it otherwise does in the main thread."""

    def __init__(self, logs: Path, arguments: LiveArguments) -> None:
        engine = EngineGroup([FakeEngine(), SecondEngine()])
        self.session = Session(engine)
        self.folder = RunFolder.create(logs, engine.name, "live")
        stack, screen = FakeStack().as_stack(), Screen(Console(quiet=True))
        opens = cast(Any, lambda *_: self.session)
        self.live = Live(arguments, engine, stack, self.folder, screen, opens)
        self.outcome = ""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.outcome = self.live.run(Guard(print))

    def act(self, name: str, **given: Any) -> None:
        self.live.act(parse_action(name, given)).result(WITHIN_S)

    def wait(self, for_what: Callable[[], object]) -> None:
        wait_until(for_what, "change of the session", WITHIN_S)

    def wait_for_event(self, kind: str) -> dict[str, Any]:
        self.wait(lambda: any(each["kind"] == kind for each in self.live.events_after(0)))
        return next(each for each in self.live.events_after(0) if each["kind"] == kind)

    def join(self) -> None:
        self._thread.join(WITHIN_S)
        assert not self._thread.is_alive()

    def end(self) -> None:
        if not self.live.end():
            self.act("end")
        self.join()

    def recorded(self) -> list[dict[str, str]]:
        with (self.folder.path / "actions.csv").open(newline="") as rows:
            return list(csv.DictReader(rows))


MakeDrive = Callable[..., Drive]


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeDrive]:
    """Return a function that starts sessions at 1,000/s; end each of them."""
    monkeypatch.setattr(session, "TICK_S", 0.05)
    made: list[Drive] = []

    def make(arguments: LiveArguments | None = None) -> Drive:
        made.append(Drive(tmp_path, arguments or LiveArguments(1_000)))
        made[-1].wait_for_event("ready")
        return made[-1]

    yield make
    for each in made:
        if not each.live.end():
            each.end()


def test_a_session_starts_at_its_rate_and_leaves_a_folder(drive: MakeDrive) -> None:
    at = drive()
    begins = ["start_stack", "run_demo", "events 1000"]
    assert [did for did in at.session.did if did in begins] == begins
    at.end()
    assert at.outcome == "ok"
    assert at.session.did[-1] == "stop"
    assert at.session.rates["events"] == 0
    assert at.live.end() == {"text": "Ended by the user.", "folder": str(at.folder.path)}
    run = read_run(at.folder.path)
    assert run.outcome == "ok"
    assert run.live and run.live.actions == 2
    assert run.live.until_ms and run.live.until_ms >= run.live.from_ms
    for name in ("fake", "second"):
        own = read_run(at.folder.of(name).path)
        assert own.outcome == "ok"
        assert own.measured and own.measured.window.start_ms == run.live.from_ms
    found = table.read([at.folder.path])
    assert [path.name for path in found.folders] == ["fake", "second"]
    assert found.rows == ()  # a session is in no table


def test_actions_are_carried_out_recorded_and_begin_segments(drive: MakeDrive) -> None:
    at = drive()
    at.act("rate", per_s="7k")
    at.act("events", kind="purchases", per_s=20)
    at.act("note", text='look, "here"')
    state = at.live.state()
    assert at.session.rates == {"events": 7_000, "purchases": 20}
    assert (state["segment"]["number"], state["segment"]["why"]) == (3, "purchases 10/s → 20/s")
    assert state["engines"][0]["verdict"]["kind"] == "undecided"
    at.end()
    rows = at.recorded()
    assert [(row["action"], row["segment"], row["by"]) for row in rows] == [
        ("rate", "1", "session"),
        ("rate", "2", "user"),
        ("events", "3", "user"),
        ("note", "3", "user"),
        ("end", "3", "user"),
    ]
    assert json.loads(rows[3]["arguments"]) == {"text": 'look, "here"'}
    assert [done.text for done in raw.actions(at.folder.of("second").path)][1] == "rate 7000"


def test_a_load_profile_drives_the_rate_until_the_next_rate(drive: MakeDrive) -> None:
    at = drive()
    at.act("load", profile="sine 1k 3k 60s")
    assert at.session.did[-1] == "begin_load sine 1k 3k 60s load_2.csv"
    state = at.live.state()
    assert state["load"] == "sine 1k 3k 60s"
    assert state["engines"][0]["verdict"]["kind"] == "none"
    at.act("rate", per_s=500)
    assert at.live.state()["load"] is None


def test_an_engine_is_killed_and_restarted(drive: MakeDrive) -> None:
    at = drive()
    at.act("kill", target="second")
    at.wait(lambda: at.live.state()["engines"][1]["status"] == "killed")
    assert at.live.state()["controls"]["kill/second"] == "second is killed."
    with pytest.raises(Refused, match="second is killed"):
        at.act("pause", target="second")
    at.act("restart", target="second")
    at.wait(lambda: at.live.state()["engines"][1]["status"] == "running")
    assert at.session.did[-2:] == ["kill ('other',) second", "restart ('other',)"]
    assert "restart 0.1 s, demo 0.2 s" in at.live.events_after(0)[-1]["text"]
    at.wait(lambda: read_run(at.folder.path).faults)
    at.end()
    run = read_run(at.folder.of("second").path)
    (fault,) = run.faults.done if run.faults else ()
    assert (fault.fault, fault.restart_s, fault.reload_s) == ("kill:second", 0.1, 0.2)
    assert fault.until_ms is not None


def test_views_are_read_while_all_engines_run_and_who_is_paused_continues_before_the_end(
    drive: MakeDrive,
) -> None:
    at = drive()
    at.act("events", kind="reads", per_s=2)
    state = at.live.state()
    assert at.session.reads_per_s == 2
    assert (state["rates"]["reads"], state["segment"]["why"]) == (2, "reads 0/s → 2/s")
    at.act("pause", target="second")
    at.wait(lambda: at.live.state()["engines"][1]["status"] == "paused")
    assert at.live.state()["controls"]["reads"] == "second is paused."
    with pytest.raises(Refused, match="second is paused"):
        at.act("events", kind="reads", per_s=3)
    at.end()
    assert at.session.did[-2:] == ["resume ('other',)", "stop"]


def test_an_engine_that_fails_does_not_end_the_session(drive: MakeDrive) -> None:
    at = drive()
    at.session.failed["fake"] = "manager ended during the run: exit code 3"
    event = at.wait_for_event("failed")
    assert (event["target"], event["text"]) == ("fake", at.session.failed["fake"])
    assert at.live.state()["engines"][0]["status"] == "failed"
    at.end()
    assert at.outcome == f"fake: {at.session.failed['fake']}"
    assert read_run(at.folder.of("fake").path).outcome == at.session.failed["fake"]
    assert read_run(at.folder.of("second").path).outcome == "ok"


def test_a_broken_stack_ends_the_session(drive: MakeDrive) -> None:
    at = drive()
    at.session.broken = "broker ended during the run: exit code 1"
    at.join()
    assert at.outcome == at.session.broken
    assert read_run(at.folder.path).outcome == at.session.broken
    assert at.session.did[-1] == "stop"
    with pytest.raises(Refused) as refused:
        at.live.act(Action("end"))
    assert refused.value.status == 503


def test_figures_follow_the_counts(drive: MakeDrive) -> None:
    at = drive()
    (hear,) = at.session.hears
    began_ms = now_ms() - 4_000
    for second in range(5):
        for curve in ("due", "published"):
            hear("", began_ms + 1000 * second, curve, [(0, 500 * second)])
        hear("second", began_ms + 1000 * second, "processed", [(0, 500 * second)])
    values = at.live.sample()["values"]
    assert values["offered_per_s"] == pytest.approx(500)
    assert values["lag_ms/second/count"] == 0
    assert values["lag_ms/fake/count"] == pytest.approx(4_000, abs=1_000)
    assert values["backlog_events/fake"] == 2_000
    hello = at.live.hello()
    assert {"offered_per_s", "cpu_pct/other"} <= {each["id"] for each in hello["series"]}
    assert hello["history"]["values"]["offered_per_s"][-1] == pytest.approx(500)
    assert [each["name"] for each in hello["kinds"]] == ["purchases"]


def test_a_session_is_replayed(drive: MakeDrive, tmp_path: Path) -> None:
    at = drive()
    at.act("rate", per_s=2_000)
    at.act("pause", target="broker")
    at.end()
    with pytest.raises(UsageError, match="not the folder of a live session"):
        record.read_session(RunFolder.create(tmp_path / "other", "fake", "5").path, "")
    name, arguments, workload = record.read_session(at.folder.path, "")
    assert (name, workload) == ("fake+second", load().workload)
    assert (arguments.per_s, arguments.replay_of) == (1_000, at.folder.tag)
    assert [each.action.name for each in arguments.schedule] == ["rate", "pause", "end"]
    again = drive(arguments)
    again.join()
    assert again.live.end() == {"text": "The replay is over.", "folder": str(again.folder.path)}
    rows = again.recorded()
    assert [row["action"] for row in rows[1:]] == ["rate", "pause", "end"]
    assert {row["by"] for row in rows[1:]} == {"replay"}
