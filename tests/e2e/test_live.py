"""End-to-end tests of several engines on one input: a run, and a session controlled by HTTP."""

import csv
import json
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from racetrack.results.folder import engine_folders
from racetrack.results.folder import read_run as read_record
from tests.e2e.shared import Door, run_folder
from tests.some_engines import EXAMPLE

pytestmark = pytest.mark.e2e

PAIR = (EXAMPLE, "pg")
WITHIN_S = 120.0


class Steered:
    """A session, and the data that its page receives."""

    def __init__(self, door: Door) -> None:
        self.door = door
        address = door.until(r"^http://127\.0\.0\.1:\d+/#token=")
        base, token = address.split("/#token=")
        headers = {"X-Racetrack-Token": token, "Content-Type": "application/json"}
        self.client = httpx.Client(base_url=base, headers=headers, timeout=60)
        self.newest: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read, args=(base,), daemon=True)
        self._reader.start()

    def _read(self, base: str) -> None:
        with httpx.stream("GET", f"{base}/events", timeout=60) as stream:
            name = ""
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.newest[name] = json.loads(line.removeprefix("data: "))

    def act(self, name: str, **given: object) -> None:
        answer = self.client.post(f"/actions/{name}", content=json.dumps(given))
        assert answer.json() == {"ok": True}, answer.text

    def until(self, reached: Callable[[], bool]) -> None:
        give_up_s = time.monotonic() + WITHIN_S
        while not reached():
            assert time.monotonic() < give_up_s, (self.newest, self.door.output)
            assert self.door.process.poll() is None, self.door.output
            time.sleep(0.1)

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.newest.get("state") or self.newest["hello"]["state"])

    def value(self, series: str) -> float:
        return float(self.newest.get("sample", {"values": {}})["values"].get(series) or 0.0)

    def status(self, engine: str) -> str:
        return next(str(e["status"]) for e in self.state["engines"] if e["name"] == engine)


def test_a_session_is_steered_and_leaves_only_its_folder(
    door: Callable[..., Door], nothing_left: Callable[[], None]
) -> None:
    steered = Steered(door("race", "live", *PAIR, "--rate", "1k", "--port", "0"))
    steered.until(lambda: "hello" in steered.newest and steered.state["phase"] == "running")
    steered.until(lambda: all(steered.value(f"counted_per_s/{name}") > 500 for name in PAIR))
    steered.act("rate", per_s="3k")
    steered.until(lambda: steered.value("offered_per_s") > 2_500)
    steered.until(lambda: all(steered.value(f"counted_per_s/{name}") > 2_000 for name in PAIR))
    killed = PAIR[1]
    steered.act("kill", target=killed)
    steered.until(lambda: steered.status(killed) == "killed")
    steered.act("restart", target=killed)
    steered.until(lambda: steered.status(killed) == "running")
    steered.until(lambda: steered.value(f"backlog/{killed}") < 3_000)
    assert f'racetrack_lag_seconds{{engine="{EXAMPLE}"' in steered.client.get("/metrics").text
    steered.door.signal(signal.SIGINT)
    assert steered.door.wait() == 0, steered.door.output
    nothing_left()
    folder = run_folder(steered.door.output)
    with (folder / "actions.csv").open(newline="") as rows:
        assert [row["action"] for row in csv.DictReader(rows)] == [
            *("rate", "rate", "kill", "restart")
        ]
    for path in engine_folders(folder):
        assert read_record(path).outcome == "ok"
        assert (path / "views.csv").stat().st_size > 100


def test_a_run_of_two_engines_has_a_result_of_each(
    door: Callable[..., Door], nothing_left: Callable[[], None]
) -> None:
    run = door("run_experiment.sh", ",".join(PAIR), "1000", "5", "3", "1.0", "--decide-within", "0")
    code = run.wait()
    nothing_left()
    folder = run_folder(run.output)
    assert folder.name.endswith(f"_UTC_{'+'.join(PAIR)}_1000")
    whole = read_record(folder)
    assert (code == 0) == all(each.outcome == "ok" for each in whole.engines), run.output
    for each in whole.engines:
        assert each.results
        assert each.results.processed_events == each.results.published_events
        assert each.results.engine
        assert each.results.engine.cpu_s > 0
