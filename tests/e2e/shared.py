"""Parts that end-to-end tests share: commands as a user runs them, and checks of their results."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from racetrack.analysis import noise, outcome, raw
from racetrack.analysis.warnings import BUSY_PCT
from racetrack.config import REPO, Settings, load
from racetrack.results import folder as runfolder
from racetrack.results.run import RunRecord
from racetrack.stack import net, processes
from racetrack.workloads.contract import Workload, find_workload
from tests import waiting
from tests.e2e.loadgen_stack import LoadgenStack
from tests.run_json import read_run
from tests.some_engines import EXAMPLE

EXPERIMENT = f"./run_experiment.sh {EXAMPLE} 5000 20 10 1.0"
LINE_WITHIN_S = 240.0
DOOR_MARK = "RACETRACK_TEST_DOOR"
# Text that is ordinary to people, but has confused programs.
ODD_TEXT = "\U0001f642 \"quoted\" 'single' <b>&amp;</b>\r\nnext line\t\\N, \\"
CONTAINED = {"RUNTIME": "compose", "AIRGAP": "true"}


def write_odd_rows(door: "Door") -> None:
    """Wait until the run has set its rate (step 4), then write odd text, NULLs and the largest
    numbers into some rows of MySQL."""
    door.until(r"^\[4/")
    settings = load()
    with net.mysql(settings).connect() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE users SET email = %s WHERE id <= 5", [ODD_TEXT])
        cursor.execute("UPDATE items SET name = %s WHERE id <= 5", [ODD_TEXT])
        cursor.execute("UPDATE items SET price = -99999.99, category = NULL WHERE id = 6")
        cursor.execute("INSERT INTO users (email, is_vip) VALUES (NULL, NULL)")
        cursor.execute(
            "INSERT INTO purchases (user_id, item_id, quantity, purchase_price)"
            " VALUES (1, 1, 4294967295, 9999999999.99)"
        )
        connection.commit()


def refusal_of(engine: str, value: bytes | None) -> str:
    """Start a run, wait until it has set its rate (step 4), and send a message that the engine
    can't read to the third partition. Return the run's outcome."""
    door = Door("run_experiment.sh", engine, "1000", "60", "1", "1.0", "--decide-within", "0")
    door.until(r"^\[4/")
    producer = Producer(net.kafka(load()).librdkafka())
    producer.produce(find_workload("shop").topic.name, value, partition=2)
    assert producer.flush(10) == 0
    sent_s = time.monotonic()
    assert door.wait() == 1, door.output
    assert time.monotonic() - sent_s < 40, door.output  # before the minute of settling is over
    outcome = str(read_run(run_folder(door.output))["outcome"])
    assert f"The experiment failed: {outcome}" in door.output
    return outcome


class Door:
    """A user's command in a process of its own; its lines are read while it runs."""

    def __init__(self, *argv: str) -> None:
        self.lines: list[str] = []
        self._mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [str(REPO / argv[0]), *argv[1:]],
            env={**os.environ, DOOR_MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=REPO,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def folder(self) -> Path:
        """The run folder."""
        return run_folder(self.output)

    def record(self) -> dict[str, Any]:
        """Return the run's `run.json`."""
        return read_run(self.folder)

    @property
    def output(self) -> str:
        """Output until now."""
        return "\n".join(self.lines)

    def until(self, pattern: str) -> str:
        """Wait for a matching line; return it."""
        give_up = time.monotonic() + LINE_WITHIN_S
        while time.monotonic() < give_up:
            for line in list(self.lines):
                if re.search(pattern, line):
                    return line
            assert self.process.poll() is None, f"ended without {pattern!r}:\n{self.output}"
            self._reader.join(0.05)
        self._end()
        raise AssertionError(f"no {pattern!r} in time:\n{self.output}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command's own process, as `kill` does."""
        self.process.send_signal(number)

    def programs(self) -> list[str]:
        """Return the names of all live programs that the command started, directly or not. They are
        recognized by an environment variable, even if their parents have ended."""
        found: list[str] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get(DOOR_MARK) == self._mark and processes.lives(process):
                    found.append(process.name())
        return found

    def interrupted(self) -> list[str]:
        """Interrupt a comparison, as Ctrl-C does; return the command that goes on later."""
        self.signal(signal.SIGINT)
        assert self.wait() == 130, self.output
        found = re.search(r"To go on later: \./race (\w+ --resume \S+)", self.output)
        assert found, self.output
        return found[1].split()

    def kill_with_watchdog(self) -> None:
        """Send SIGKILL to the command, and to the watchdog that would clean up after it."""
        (watchdog,) = [
            child
            for child in psutil.Process(self.process.pid).children()
            if "racetrack.stack.watchdog_process" in child.cmdline()
        ]
        watchdog.kill()
        self.process.kill()
        self.wait()

    def wait(self, within_s: float = 240) -> int:
        """Wait for the command's end; return its exit code."""
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._end()
            raise AssertionError(f"it ran for over {within_s:.0f} s:\n{self.output}") from None
        self._reader.join(5)
        return code

    def _end(self) -> None:
        """End the command, so that it does not disturb later tests."""
        self.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        self.process.kill()
        self._reader.join(5)

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))


Open = Callable[..., Door]
NothingLeft = Callable[[], None]
WaitUntil = Callable[..., None]


@contextlib.contextmanager
def stack_up(engine: str, within_s: float) -> Iterator[Door]:
    """Start a stack with `race up`, without the demo; stop it at the end."""
    door = Door("race", "up", engine)
    try:
        assert door.wait(within_s) == 0, door.output
        yield door
    finally:
        down = Door("race", "down")
        assert down.wait() == 0, down.output


@pytest.fixture(scope="session")
def settings() -> Settings:
    return load()


@pytest.fixture(scope="session")
def experiment() -> Door:
    """Run the README's experiment to its end, as the README shows it."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("DECIDE_WITHIN")  # continue until the verdict is decided
        door = Door(*shlex.split(EXPERIMENT))
    ended_well(door, within_s=400)
    return door


@pytest.fixture
def nothing_left(settings: Settings) -> Callable[[], None]:
    """Return a function that fails unless all processes, ports and data of the stack are gone."""

    def check() -> None:
        left = processes.members(settings.stack_name)
        assert left == []
        assert not processes.work_root(settings.stack_name).exists()
        ours = {port for name, port in settings.model_dump().items() if name.endswith("_port")}
        listening = {
            connection.laddr.port
            for connection in psutil.net_connections(kind="tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr
        }
        assert ours & listening == set()

    return check


@pytest.fixture
def door(settings: Settings) -> Iterator[Callable[..., Door]]:
    """Return a function that starts commands; end those that a failed test left running."""
    opened: list[Door] = []

    def open_door(*argv: str) -> Door:
        opened.append(Door(*argv))
        return opened[-1]

    yield open_door
    for each in opened:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
            each.process.wait()
    processes.clear(settings.stack_name)


@pytest.fixture(scope="module")
def loadgen(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadgenStack]:
    """Start the load generator, MySQL and the broker beside any running stack, once per file."""
    stack = LoadgenStack(settings, tmp_path_factory.mktemp("stack"))
    try:
        stack.up()
        yield stack
    finally:
        stack.down()


@pytest.fixture(scope="module")
def contained(settings: Settings, docker_engine: object, airgap_images: None) -> Iterator[Settings]:
    """Let commands run the stack in containers from now on; yield the settings for that. The
    fixture `settings` does not change."""
    name = f"{settings.stack_name}-contained"
    with pytest.MonkeyPatch.context() as environment:
        for variable, value in {**CONTAINED, "STACK_NAME": name}.items():
            environment.setenv(variable, value)
        yield load()


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., None]:
    """Return a function that waits for a condition, until a deadline whose error names it."""
    return partial(waiting.wait_until, every_s=0.2)


def ended_well(door: Door, within_s: float = 240) -> dict[str, Any]:
    """Return `run.json` of an experiment; fail unless it ended well. On a busy machine, the
    generator may have missed its rate: that is reported, and accepted."""
    code = door.wait(within_s)
    folder = run_folder(door.output)
    run = runfolder.read_run(folder)
    assert run.results, door.output
    assert run.outcome in ("ok", rate_missed(run)), door.output
    assert code == (0 if run.outcome == "ok" else 1)
    return read_run(folder)


def rate_missed(run: RunRecord) -> str | None:
    """Return the message if the generator missed its rate; None if it did not."""
    assert run.arguments and run.results
    return outcome.rate_missed(run.arguments, run.results)


def skip_if_busy(*folders: Path) -> None:
    """Skip a test of accuracy if other programs used the cores during the run."""
    for folder in folders:
        rows = raw.noise(folder)
        found = noise.over(rows, rows[0].at_ms, rows[-1].at_ms) if rows else None
        if found and found.machine_busy_pct > BUSY_PCT:
            pytest.skip(f"the machine was busy ({found.machine_busy_pct:.0f} %) in {folder.name}")


def check_views_after_a_kill(run: Mapping[str, Any], door: Door) -> None:
    """Fail unless all views are right. Users who ceased to be of high value while the engine was
    dead may remain in Kafka, as nothing retracts them (docs/faults.md); the run reports them."""
    assert "verified" in run, door.output
    views = run["verified"]["views"]
    assert {name for name, view in views.items() if view["status"] != "right"} <= {"hvu_test"}
    assert views["hvu_test"]["missing"] == views["hvu_test"]["different"] == 0, door.output
    is_right = views["hvu_test"]["extra"] == 0
    if run["outcome"] != rate_missed(RunRecord.model_validate(run)):  # it comes first
        assert (run["outcome"] == "ok") is is_right, door.output
    assert door.process.returncode == (0 if run["outcome"] == "ok" else 1)


def check_views_followed(run: Mapping[str, Any], folder: Path, tracer_events_per_s: float) -> None:
    """Check that each traced view of the engine showed nearly all tracer events by the end of the
    run, and that its lag is reported."""
    found = {view["name"]: view for view in run["results"]["views"]}
    absent = run["absent_views"]
    traced = [view for view in _workload(run).with_tracer_rows if view.view not in absent]
    assert found.keys() == {view.name for view in traced}
    newest, _, in_database = _last_row(folder / "tracer_events.csv")
    for view in traced:
        result, share = found[view.name], 1 if view.parity is None else 0.5
        assert result["tracer_events_per_s"] == pytest.approx(
            share * tracer_events_per_s, rel=0.3
        ), result
        assert result["lag_p99_ms"] is not None, result
        assert 0 <= result["lag_p50_ms"] <= result["lag_p99_ms"] <= result["lag_max_ms"], result
        partitions = _rows_of(folder / "views.csv", view.name)
        for rows in partitions:
            assert rows == sorted(rows), view.name
            content = [value for _at_ms, value in rows]
            assert run.get("faults") or content == sorted(content), view.name
        values = [rows[-1][1] for rows in partitions]
        assert len(values) == run["settings"]["events_partitions"], values
        if not view.is_time:
            assert 0.9 * share * newest <= sum(values) <= share * newest + 1, (newest, values)
    assert in_database == newest
    path = run["results"]["cdc"]
    assert path["inserts_per_s"] >= 0.8 * tracer_events_per_s, path
    for quantile in ("p50_ms", "p99_ms"):
        ages = [path[stage][quantile] for stage in ("in_database", "sent", "in_topic")]
        assert ages[0] >= 0 and ages == sorted(ages), path


def check_answers(run: Mapping[str, Any]) -> None:
    """Fail unless every query on a view of the engine was sent and answered. Answers have a time,
    and an age if tracer events show one; the reader's CPU time is counted separately."""
    reads = {read["query"]: read for read in run["results"]["reads"]}
    absent = run["absent_views"]
    queries = [query for query in _workload(run).queries if query.view not in absent]
    assert list(reads) == [query.name for query in queries]
    for query in queries:
        read = reads[query.name]
        assert read["answered"] > 0, read
        assert read["answered"] + read["errors"] <= read["due"], read
        assert read["rows_max"] > 0, read
        assert read["service_time"]["p50_ms"] >= 0, read
        assert (read["age"] is None) == (query.by is None), read
    assert sum(run["measured"]["cpu_s"]["reader"].values()) > 0  # user time alone may be 0
    assert "reader" not in run["engine_services"]


def _workload(run: Mapping[str, Any]) -> Workload:
    return find_workload(run["settings"]["workload"])


def _last_row(path: Path) -> list[int]:
    """Return the last row's values, without its time."""
    return [int(cell) for cell in path.read_text().splitlines()[-1].split(",")][1:]


def _rows_of(path: Path, name: str) -> list[list[tuple[int, int]]]:
    """Return the rows of a view as (at_ms, value), one list per partition."""
    message: dict[str, list[tuple[int, int]]] = {}
    for row in path.read_text().splitlines()[1:]:
        at_ms, view, partition, value = row.split(",")
        if view == name:
            message.setdefault(partition, []).append((int(at_ms), int(value)))
    return list(message.values())


def purchases_without_marks(run: Mapping[str, Any], folder: Path) -> int:
    """Return the number of purchases, without tracer events, when the views were verified."""
    marks = folder / "tracer_events.csv"
    *_, in_database = _last_row(marks) if marks.exists() else [0]
    return int(run["verified"]["source_rows"]["purchases"]) - in_database


def text_of_run(door: Door) -> str:
    """Wait for a successful end of a run; return its output, the content of its folder, and the
    command lines of all processes before."""
    arguments = [" ".join(of.info["cmdline"] or ()) for of in psutil.process_iter(["cmdline"])]
    assert door.wait(400) == 0, door.output
    files = [path for path in door.folder.rglob("*") if path.is_file()]
    content = [path.read_text(errors="replace") for path in files]
    return "\n".join([door.output, *content, *arguments])


def run_folder(output: str) -> Path:
    """Return the run folder that the command's first lines name."""
    match = re.search(r"\), into (.+)$", output, re.MULTILINE)
    assert match, output
    return REPO / match[1]


def nc(settings: Settings, *commands: str) -> list[str]:
    """Type commands into `nc`; return the lines that it shows."""
    typed = "".join(f"{command}\n" for command in [*commands, "quit"])
    address = [settings.reach_address, str(settings.loadgen_port)]
    done = subprocess.run(
        ["nc", *address], input=typed, capture_output=True, text=True, timeout=10, check=True
    )
    return done.stdout.splitlines()
