"""Tests of the runner on fake engines and a fake clock: its windows, engines that fail, void
windows and resumption."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from rich.console import Console

from racetrack import config, terminal
from racetrack.analysis import raw
from racetrack.analysis.limits import too_slow
from racetrack.analysis.table import Row, read
from racetrack.cli.compare import outcome_code
from racetrack.config import Settings
from racetrack.errors import SetupError, UsageError
from racetrack.plan.model import find_plan, parse_plan
from racetrack.plan.resolve import Options, ResolvedPlan, recorded, resolve
from racetrack.report.sheet import sheet
from racetrack.results.experiment import ExperimentRecord, read_experiment
from racetrack.results.figures import Throughput
from racetrack.results.folder import RunFolder, read_run
from racetrack.results.run import PartOf, RunArguments
from racetrack.run.experiment import run_once
from racetrack.run.faults import parse
from racetrack.run.phases import rounded_down
from racetrack.run.runner import (
    Runner,
    RunOnce,
    begin,
    keep_runtime,
    require_possible,
    with_runtime,
)
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.terminal import Screen
from simulations.fluid import SimulatedEngine
from tests.run.fakes import FakeEngine, FakeStack
from tests.run.fluid_session import FakeClock, FluidSession
from tests.service_facts import OUTSIDE
from tests.some_engines import TWO

SWIFT, SLOW = TWO
HEAP = next(iter(config.heaps_of_engine(SLOW))).upper()
CAPACITY = {SWIFT: 30_000.0, SLOW: 12_000.0}
WARM_UP_S, SETTLE_S, WINDOW_S = 15, 3, 10
QUICK = """
repeats = 2
seed = 1
phase = [
    { warm_up = "5s", at = "lowest" },
    { warm_up = "10s", at = "highest" },
    { window = "10s", settle = "3s", loads = ["2k", "5k"], order = "random" },
    { saturate = "20s", hold = "35s", batch = "10s" },
]
"""
ONCE = QUICK.replace("repeats = 2", "repeats = 1")
WARM_UP = '{ warm_up = "5s", at = "lowest" }'
SATURATED = '{ warm_up = "20s", at = "saturation" }'
SATURATE = '{ saturate = "20s", hold = "20s", batch = "10s" }'


def window(*loads: str) -> str:
    return f'{{ window = "10s", settle = "3s", loads = {list(loads)} }}'


def phases(*each: str) -> str:
    return f"phase = [{', '.join(each)}]"


def planned(*variants: str, text: str = QUICK) -> ResolvedPlan:
    return resolve(parse_plan(text, "my"), "my", Options(variants=variants))


def changed(of: int | str | None = None, **values: Any) -> Callable[[FluidSession], None]:
    """Return a change of the sessions of an engine, or of one, by its number, or of all."""

    def change(session: FluidSession) -> None:
        if of in (None, session.number, session.service):
            vars(session).update(values)

    return change


class Named(FakeEngine):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.services = name, (name,)


class Fakes:
    """Carries out plans with fake sessions on one clock; calls `change` with each session."""

    def __init__(self, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.sessions = FakeClock(), list[FluidSession]()
        self.change = changed()
        monkeypatch.setenv("LOGS_FOLDER", str(logs))
        monkeypatch.setenv("NOISE_GATE", "true")
        self.rows: list[Row] = []
        self.stacks_before: list[int] = []  # how many had started at each call before a stack

    def session(self, engine: FakeEngine, _stack: Stack, folder: RunFolder, *_: object) -> Session:
        fluid = SimulatedEngine(per_s=CAPACITY.get(engine.name, 1e6), noise=0.02)
        rng = np.random.default_rng(len(self.sessions))
        made = FluidSession(self.clock, fluid, rng, folder, engine.name)
        made.number = len(self.sessions)
        self.change(made)
        self.sessions.append(made)
        return cast(Session, made)

    def begin(self, text: str = QUICK, variants: tuple[str, ...] = TWO) -> Path:
        return begin(planned(*variants, text=text), ("./race", "compare"))

    def carry_out(self, folder: Path, run_once: RunOnce = run_once) -> ExperimentRecord:
        return Runner(
            folder,
            Screen(Console(quiet=True)),
            terminal.Guard(print),
            on_row=self.rows.append,
            open_session=self.session,
            prepare=lambda name, settings, _: (Named(name), FakeStack(settings).as_stack()),
            run_once=run_once,
            before_stack=lambda: self.stacks_before.append(len(self.sessions)),
            clock=self.clock,
        ).run()

    def run(
        self, text: str = QUICK, variants: tuple[str, ...] = TWO, **changes: Any
    ) -> tuple[Path, ExperimentRecord]:
        """Carry out a plan; return its folder and record. `changes` are those of `changed`."""
        if changes:
            self.change = changed(**changes)
        folder = self.begin(text, variants)
        return folder, self.carry_out(folder)

    def interrupt(self, folder: Path, number: int, at_s: float) -> None:
        """Carry out a plan until a session, given by its number, is interrupted."""
        self.change = changed(number, interrupted_at_s=at_s)
        with pytest.raises(terminal.Interrupted):
            self.carry_out(folder)
        self.change = changed()

    def resume(self, folder: Path) -> ExperimentRecord:
        """Carry out the rest of a plan, undisturbed."""
        self.change = changed()
        return self.carry_out(folder)


def measured(folder: Path, engine: str = "") -> list[tuple[str, str]]:
    """Return window and outcome of each row, sorted."""
    rows = read([folder]).rows
    return sorted((row.window, row.outcome) for row in rows if engine in ("", row.engine))


def spans_s(folder: Path, record: ExperimentRecord) -> list[tuple[float, float]]:
    """Return begin and end of each window of the last run, in seconds since its start."""
    path = folder.parent / str(record.runs[-1].tag)
    began_ms = raw.noise(path)[0].at_ms
    ends_ms = ((made.start_ms or 0, made.end_ms or 0) for made in read_run(path).windows)
    return [((start - began_ms) / 1000, (end - began_ms) / 1000) for start, end in ends_ms]


def saturated(folder: Path) -> Row:
    (row,) = [row for row in read([folder]).rows if row.load is None]
    return row


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    return Fakes(tmp_path, monkeypatch)


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set RUNTIME=auto on a machine whose programs are in the returned folder: only `apt-get`."""
    monkeypatch.setenv("RUNTIME", "auto")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "apt-get").touch(mode=0o755)
    return tmp_path


def runtimes(plan: ResolvedPlan) -> list[str]:
    return [config.load(plan.settings_of(cell)).runtime for cell in plan.cells]


@pytest.mark.usefixtures("debian")
@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        (("dh", "kstreams"), "native"),
        (("dh", "mz"), "compose"),  # mz has no native form
        (("dh", "mz[MZ_URL=postgres://m@m.example/m]"), "native"),
    ],
)
def test_all_runs_of_a_plan_have_the_runtime_for_which_auto_stands(
    variants: tuple[str, ...], expected: str
) -> None:
    lines: list[str] = []
    chosen = with_runtime(planned(*variants), lines.append)
    assert runtimes(chosen) == [expected] * 4
    assert len(lines) == 1 and "RUNTIME=" in lines[0]
    assert with_runtime(chosen, lines.append) == chosen and len(lines) == 1


@pytest.mark.usefixtures("debian")
def test_a_plan_is_refused_with_the_engine_that_needs_containers() -> None:
    with pytest.raises(SetupError, match="materialized"):  # there is no Docker
        require_possible(with_runtime(planned("dh", "mz"), print))


@pytest.mark.parametrize(
    ("variant", "environment", "is_read"),
    [
        ("dh[DEEPHAVEN_HEAP=2g]", {}, True),
        ("dh[DEEPHAVEN_HEAP=2g]", {"DEEPHAVEN_URL": "http://d.example:1"}, False),
        ("dh[DEEPHAVEN_PUBLISH=true]", {"DEEPHAVEN_URL": "http://d.example:1"}, True),
        ("flink[FLINK_PROPERTIES=a=b]", {"FLINK_GATEWAY_URL": "http://f.example:1"}, True),
        ("pg[POSTGRES_BATCH_MS=50]", {"POSTGRES_URL": "postgres://p@p.example/p"}, True),
        ("pg[POSTGRES_SHARED_BUFFERS=64MB]", {"POSTGRES_URL": "postgres://p@p.example/p"}, False),
        ("pg[KAFKA_HEAP=2g]", OUTSIDE, False),
    ],
)
def test_a_setting_of_a_variant_that_no_started_service_reads_is_refused(
    variant: str, environment: dict[str, str], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with nullcontext() if is_read else pytest.raises(UsageError, match="has no effect"):
        assert require_possible(planned(variant))[0] == "native"


@pytest.mark.slow
def test_a_resumed_plan_keeps_the_runtime_of_its_runs(fakes: Fakes, debian: Path) -> None:
    folder, record = fakes.run()
    (debian / "apt-get").unlink()  # now auto would stand for containers
    assert runtimes(with_runtime(recorded(record), print)) == ["compose"] * 4
    keep_runtime(folder)
    assert runtimes(recorded(read_experiment(folder))) == ["native"] * 4


@pytest.mark.slow
def test_each_variant_is_measured_at_every_load_and_at_saturation(fakes: Fakes) -> None:
    folder, record = fakes.run()
    assert [run.outcome for run in record.runs] == ["ok"] * 4
    table = read([folder])
    assert not table.missing and not table.left_out
    assert len(table.rows) == len(fakes.rows) == 12
    assert fakes.stacks_before == [*range(len(fakes.sessions))]
    for row in table.rows:
        assert row.outcome == "ok" and row.experiment == folder.name
        if row.load is None:
            capacity = row.values["capacity_per_s"]
            assert capacity == pytest.approx(CAPACITY[row.engine], rel=0.05)
        else:
            assert row.held and row.values["cpu_s_per_million"] == pytest.approx(10, rel=0.05)
    assert {(row.variant, row.repeat) for row in table.rows} == {
        (name, repeat) for name in TWO for repeat in (1, 2)
    }
    part = read_run(folder.parent / str(record.runs[0].tag)).part_of
    assert part and (part.experiment, part.repeat) == (folder.name, 1)
    orders = [session.set_to for session in fakes.sessions]
    assert all(order[:2] == [2_000, 5_000] for order in orders)
    assert all(sorted(order[2:]) == [2_000, 5_000] for order in orders)


@pytest.mark.slow
def test_what_the_broker_does_for_an_engine_is_what_it_does_not_do_for_the_input(
    fakes: Fakes,
) -> None:
    def costs(session: FluidSession) -> None:
        session.broker_s_each = {"cal": 1e-6, SWIFT: 4e-6, SLOW: 1e-6}[session.service]

    fakes.change = costs
    folder, _ = fakes.run(f"input_alone = '10s'\n{QUICK}")
    at_rates = ("broker_for_engine_cpu_s_per_million", 4)
    at_saturation = ("saturated_broker_for_engine_cpu_s_per_million", 2)
    for name, more_s in ((SWIFT, 3.0), (SLOW, 0.0)):
        for key, windows in (at_rates, at_saturation):
            rows = [row for row in read([folder]).rows if row.engine == name and key in row.values]
            assert len(rows) == windows
            assert all(row.values[key] == pytest.approx(more_s, abs=0.3) for row in rows)
    assert not any(row.engine == "cal" for row in fakes.rows)


@pytest.mark.slow
@pytest.mark.parametrize(("slow_ns", "is_void"), [(28.0, True), (24.0, False)])
def test_windows_in_which_the_machine_has_become_slow_are_measured_again(
    fakes: Fakes, slow_ns: float, *, is_void: bool
) -> None:
    _, record = fakes.run(ONCE)
    second = record.runs[1].variant
    fakes.change = changed(second, read_ns=slow_ns)
    folder, _ = fakes.run(ONCE)
    assert any("a read from memory took" in text for _, text in measured(folder, second)) == is_void
    began = len(fakes.sessions)
    fakes.change = changed(second, read_ns=20.0)
    fakes.resume(folder)
    assert [session.service for session in fakes.sessions[began:]] == [second] * is_void
    assert [text for _, text in measured(folder, second)].count("ok") == 3


@pytest.mark.slow
def test_the_input_is_measured_at_fixed_rates_if_a_plan_finds_its_own_later(fakes: Fakes) -> None:
    _, record = fakes.run(f"input_alone = '10s'\n{phases(SATURATE)}", (SWIFT,))
    rates = [round(alone.per_s, -2) for alone in record.input_alone]
    assert rates == [100_000, 10_000, 1_000]
    assert fakes.stacks_before == [*range(len(fakes.sessions))]


@pytest.mark.slow
def test_an_engine_that_runs_out_of_memory_gets_a_lower_bound(fakes: Fakes) -> None:
    folder, _ = fakes.run(of=SWIFT, dies_at_s=WARM_UP_S + 2 * (SETTLE_S + WINDOW_S) + 30)
    bounds = [row for row in read([folder]).rows if row.at_least]
    assert {(row.engine, row.window) for row in bounds} == {(SWIFT, "saturation")}
    assert all("out of memory" in row.remark for row in bounds)
    assert all(row.values["capacity_per_s"] > 10_000 for row in bounds)


@pytest.mark.parametrize(
    ("cores", "broker_cores", "why"),
    [
        ("ENGINE_CPUS=1 HARNESS_CPUS=0", 0.97, "broker 97 %"),
        ("ENGINE_CPUS=1 HARNESS_CPUS=0", 0.5, ""),
        ("ENGINE_CPUS=1 HARNESS_CPUS=0,2 BROKER_CPUS=2", 0.97, "broker 97 %"),
        ("ENGINE_CPUS=0,1", 0.97, ""),
    ],
)
def test_a_capacity_is_a_lower_bound_if_other_cores_were_busy(
    fakes: Fakes, cores: str, broker_cores: float, why: str
) -> None:
    folder, _ = fakes.run(ONCE, (f"{SLOW}[{cores}]",), broker_cores=broker_cores)
    row = saturated(folder)
    assert row.at_least == ({"capacity_per_s"} if why else set())
    assert why in row.remark and bool(row.remark) == bool(why)


def test_a_lower_bound_names_who_was_too_slow(fakes: Fakes) -> None:
    def named(handed_over_per_s: float, published_per_s: float) -> str:
        rates = Throughput(
            offered_per_s=100,
            handed_over_per_s=handed_over_per_s,
            published_per_s=published_per_s,
            processed_per_s=80,
        )
        return too_slow(rates)

    assert named(100, 80).startswith("the broker")
    assert named(100, 100).startswith("generator and broker")
    folder, _ = fakes.run(ONCE, (SLOW,), hands_over_per_s=8_000)
    row = saturated(folder)
    assert row.at_least == {"capacity_per_s"} and "the generator" in row.remark


@pytest.mark.slow
def test_an_engine_that_fails_ends_its_run_only(fakes: Fakes) -> None:
    folder, record = fakes.run(of=SWIFT, dies_at_s=WARM_UP_S + 1)
    failure = "the engine ended: out of memory"
    assert {(run.variant, run.outcome) for run in record.runs} == {(SWIFT, failure), (SLOW, "ok")}
    assert all((row.outcome == "ok") == (row.engine == SLOW) for row in fakes.rows)
    assert all(failure in row.outcome for row in fakes.rows if row.engine == SWIFT)
    assert len(fakes.rows) == 12
    fakes.carry_out(folder)
    assert len(fakes.sessions) == 4  # a failure is a result


@pytest.mark.slow
@pytest.mark.parametrize("at_s", [2, WARM_UP_S + 5, WARM_UP_S + 20, WARM_UP_S + 50])
def test_an_interrupted_run_is_resumed_where_it_ended(fakes: Fakes, at_s: int) -> None:
    folder = fakes.begin()
    fakes.interrupt(folder, 1, at_s)
    before = list(fakes.rows)
    record = fakes.resume(folder)
    assert len(fakes.sessions) == 5
    assert fakes.rows[: len(before)] == before
    assert len({(row.variant, row.repeat, row.window) for row in fakes.rows}) == 12
    second = [run for run in record.runs if run.cell == 1]
    assert len(second) == 2 and len({run.tag for run in second}) == 2
    assert [outcome for _, outcome in measured(folder)].count("ok") == 12


def test_a_window_that_others_disturb_moves_on_until_it_is_quiet(fakes: Fakes) -> None:
    text, disturbed_s = phases(WARM_UP, window("2k", "5k")), 14  # the first window begins at 8 s
    folder, record = fakes.run(text, (SLOW,), disturbed_until_s=disturbed_s)
    assert measured(folder) == [("2,000/s", "ok"), ("5,000/s", "ok")]
    (first, first_end), (second, second_end) = spans_s(folder, record)
    assert disturbed_s - 2 <= first <= disturbed_s + 5  # 5 % of a core: 1.5 s of the disturbance
    assert [first_end - first, second_end - second] == pytest.approx([WINDOW_S] * 2)
    assert second - first_end == pytest.approx(1 + SETTLE_S, abs=0.1)  # it has not moved
    assert fakes.sessions[0].set_to == [2_000, 2_000, 5_000]


@pytest.mark.slow
def test_saturation_goes_on_until_it_is_quiet(fakes: Fakes) -> None:
    text = phases(SATURATED, SATURATE)
    calm = spans_s(*fakes.run(text, (SLOW,)))
    disturbed_s = calm[0][1]
    noisy = spans_s(*fakes.run(text, (SLOW,), disturbed_until_s=disturbed_s))
    assert disturbed_s - 3 <= noisy[0][0] <= disturbed_s + 5
    assert {row.outcome for row in fakes.rows} == {"ok"}
    assert [session.set_to for session in fakes.sessions] == [[], []]


def test_a_window_that_is_never_quiet_moves_by_three_times_its_length(fakes: Fakes) -> None:
    text = phases(WARM_UP, window("2k"))
    folder, record = fakes.run(text, (SLOW,), disturbed_until_s=float("inf"))
    (first, _), *_ = spans_s(folder, record)
    assert first == pytest.approx(8 + 3 * WINDOW_S, abs=0.5)
    assert "other programs used" in fakes.rows[-1].outcome


def test_a_window_does_not_move_because_of_a_cpu_quota(fakes: Fakes) -> None:
    folder, record = fakes.run(phases(WARM_UP, window("2k")), (SLOW,), quota_cores=1.5)
    ((first, _),) = spans_s(folder, record)
    assert first == pytest.approx(8, abs=0.5)
    assert "CPU quota" in fakes.rows[-1].outcome


@pytest.mark.slow
def test_windows_that_were_never_quiet_are_measured_on_resumption(fakes: Fakes) -> None:
    folder, record = fakes.run(of=3, disturbed_until_s=float("inf"))
    assert [run.is_done for run in record.runs] == [True, True, True, False]
    assert fakes.resume(folder).runs[-1].is_done
    assert len(fakes.sessions) == 5


@pytest.mark.slow
def test_shares_of_the_slowest_come_from_a_scout_of_each_variant(fakes: Fakes) -> None:
    text = f"scout = '60s'\n{ONCE}".replace('"2k", "5k"', '"10% of slowest", "50% of slowest"')
    _, record = fakes.run(text)
    slowest = record.scouted_per_s[SLOW]
    assert slowest == pytest.approx(12_000, rel=0.1)
    rates = {row.load.per_s for row in fakes.rows if row.load}
    assert rates == {rounded_down(share * slowest) for share in (0.1, 0.5)}
    assert len(fakes.sessions) == 4


@pytest.mark.slow
def test_a_share_of_the_own_capacity_follows_the_saturation_of_the_run(fakes: Fakes) -> None:
    fakes.run(phases(SATURATED, SATURATE, window("50%", "20k")))
    shares = {row.engine: row.load for row in fakes.rows if row.load and row.load.share}
    for name, capacity in CAPACITY.items():
        load = shares[name]
        assert load and load.per_s == pytest.approx(capacity / 2, rel=0.06)
    above = next(row for row in fakes.rows if row.engine == SLOW and row.window == "20,000/s")
    assert above.verdict == "fell behind" and "not offered" in above.remark


@pytest.mark.slow
def test_a_warm_up_at_the_highest_load_knows_the_capacity_of_an_earlier_stack(
    fakes: Fakes,
) -> None:
    warm_up = '{ warm_up = "10s", at = "highest", fresh = true }'
    fakes.run(phases(SATURATED, SATURATE, warm_up, window("2k", "50%")), (SLOW,))
    (half,) = (row.load.per_s for row in fakes.rows if row.load and row.load.share)
    assert fakes.sessions[-1].set_to[0] == half > 2_000


@pytest.mark.slow
def test_of_two_equal_warm_ups_the_one_after_saturation_knows_the_capacity(fakes: Fakes) -> None:
    warm_up = '{ warm_up = "10s", at = "highest" }'
    fakes.run(phases(warm_up, SATURATE, warm_up, window("2k", "50%")), (SLOW,))
    (half,) = (row.load.per_s for row in fakes.rows if row.load and row.load.share)
    rates = fakes.sessions[-1].set_to
    assert rates[0] == 2_000 and rates.count(half) == 2


SCOUTED = "scout = '60s'\n" + phases(
    SATURATED,
    SATURATE,
    '{ window = "10s", settle = "3s", loads = ["50%"], fresh = true }',
)


@pytest.mark.slow
def test_a_scout_does_not_stand_for_a_saturation_that_was_void(fakes: Fakes) -> None:
    folder, record = fakes.run(SCOUTED, (SLOW,), of=1, disturbed_until_s=float("inf"))
    assert len(fakes.sessions) == 2  # the scout, and the void stack
    assert not record.runs[-1].is_done
    fakes.resume(folder)
    assert {("50 % of capacity", "ok"), ("saturation", "ok")} <= {*measured(folder)}


@pytest.mark.slow
def test_a_scout_does_not_stand_for_a_saturation_that_failed(fakes: Fakes) -> None:
    _, record = fakes.run(SCOUTED, (SLOW,), of=1, dies_at_s=40)
    assert len(fakes.sessions) == 2
    assert "its capacity is unknown: " in str(record.runs[-1].outcome)


@pytest.mark.slow
def test_a_run_whose_saturation_was_void_is_resumed_with_the_shares_of_it(fakes: Fakes) -> None:
    text = phases(SATURATED, SATURATE, window("50%"))
    folder, record = fakes.run(text, (SLOW,), disturbed_until_s=float("inf"))
    assert not record.runs[-1].is_done
    fakes.resume(folder)
    assert {("50 % of capacity", "ok"), ("saturation", "ok")} <= {*measured(folder)}


@pytest.mark.slow
def test_a_run_is_divided_once_the_scout_shows_that_its_events_do_not_fit(fakes: Fakes) -> None:
    text = f"scout = '60s'\n{ONCE}".replace('"2k", "5k"', '"25%", "80%"')
    variant = f"{SWIFT}[DEEPHAVEN_HEAP=300m]"
    folder = fakes.begin(text, (variant, SLOW))
    fakes.interrupt(folder, 3, 2)
    record = fakes.resume(folder)
    stacks = [run.cell for run in record.runs if run.variant == variant and run.outcome == "ok"]
    assert len(stacks) == len(set(stacks)) == 2
    assert any("divided" in remark for remark in record.plan["remarks"])
    windows = [(f"{share} % of capacity", "ok") for share in (25, 80)] + [("saturation", "ok")]
    assert {*measured(folder, SWIFT)} >= {*windows}
    assert measured(folder, SLOW) == windows


def test_a_load_whose_events_do_not_fit_is_not_offered_and_named(fakes: Fakes) -> None:
    folder, _ = fakes.run(phases(window("2k", "20k")), (f"{SWIFT}[DEEPHAVEN_HEAP=32m]",))
    outcomes = dict(measured(folder))
    assert outcomes["2,000/s"] == "ok" and "not offered" in outcomes["20,000/s"]
    assert all(session.set_to != [20_000] for session in fakes.sessions)


@pytest.mark.slow
def test_loads_that_do_not_fit_beside_others_are_measured_on_another_stack(fakes: Fakes) -> None:
    text = phases(WARM_UP, window("1k"), SATURATE, window("50%", "60%", "80%"))
    # Room for 521,000 events of 163 bytes: fewer than at saturation. The shares have 195,000,
    # 234,000 and 312,000.
    folder, record = fakes.run(text, (f"{SWIFT}[DEEPHAVEN_HEAP=180m]",))
    shares = [(f"{share} % of capacity", "ok") for share in (50, 60, 80)]
    assert measured(folder) == [("1,000/s", "ok"), *shares, ("saturation", "ok")]
    assert len(fakes.sessions) == len(record.runs) == 3


@pytest.mark.parametrize(("disturbed_s", "stacks"), [(0, 2), (1e9, 1)])
def test_no_stack_follows_a_void_one(fakes: Fakes, disturbed_s: float, stacks: int) -> None:
    # 137,000 events fit, but not below the share of the heap at which G1 begins to mark.
    variant = f"{SWIFT}[DEEPHAVEN_HEAP=30m]"
    text = phases(WARM_UP, window("4k", "5k"))
    _, record = fakes.run(text, (variant,), disturbed_until_s=disturbed_s)
    assert len(fakes.sessions) == stacks
    assert (record.runs[-1].outcome == "ok") == (disturbed_s == 0)


@pytest.mark.slow
@pytest.mark.parametrize(("each", "minutes"), [(1e-7, 25.0), (0.0, float("inf")), (None, None)])
def test_the_time_until_a_heap_is_full_is_that_at_half_of_the_capacity(
    fakes: Fakes, each: float | None, minutes: float | None
) -> None:
    text = ONCE.replace('"2k", "5k"', '"2k"')
    folder, _ = fakes.run(text, (f"{SLOW}[{HEAP}=1126400k]",), heap_gib_each=each)  # 1.07 GiB
    expected = minutes and pytest.approx(minutes, rel=0.1)
    assert saturated(folder).values.get("memory_full_after_min") == expected


@pytest.mark.slow
@pytest.mark.parametrize(("each", "stacks"), [(1e-6, 2), (1e-8, 1), (None, 1)])
def test_loads_follow_on_a_fresh_stack_if_saturation_has_filled_the_heap(
    fakes: Fakes, each: float | None, stacks: int
) -> None:
    text = phases(SATURATED, SATURATE, window("50%"))
    folder, _ = fakes.run(text, (f"{SLOW}[{HEAP}=1g]",), heap_gib_each=each)
    assert len(fakes.sessions) == stacks
    assert measured(folder) == [("50 % of capacity", "ok"), ("saturation", "ok")]


@pytest.mark.slow
def test_what_an_event_needs_of_the_heap_is_known_on_the_next_stack(fakes: Fakes) -> None:
    fresh = '{ window = "10s", settle = "3s", loads = ["50%", "80%"], fresh = true }'
    text = phases(SATURATED, SATURATE, fresh)
    fakes.run(text, (f"{SLOW}[{HEAP}=1g]",), heap_gib_each=2e-6)
    assert len(fakes.sessions) == 3


@pytest.mark.slow
def test_a_variant_whose_scout_fails_is_left_out_and_the_others_go_on(fakes: Fakes) -> None:
    text = f"scout = '60s'\n{QUICK}".replace('"2k", "5k"', '"10% of slowest", "80%"')
    folder, record = fakes.run(text, of=SWIFT, dies_at_s=5)
    assert list(record.scouted_per_s) == [SLOW]
    table = read([folder])
    assert {(row.engine, row.outcome) for row in table.rows} == {(SLOW, "ok")}
    assert len(table.rows) == 6
    assert len(table.missing) == 2
    assert all(SWIFT in line and "out of memory" in line for line in table.missing)
    assert outcome_code(record) == 1
    assert outcome_code(fakes.resume(folder)) == 0  # resumed, it is scouted again
    assert len(read([folder]).rows) == 12


@pytest.mark.slow
def test_a_scout_that_was_disturbed_while_the_engine_warmed_up_is_repeated(fakes: Fakes) -> None:
    text = f"scout = '60s'\n{phases(window('50%'))}"
    folder, _ = fakes.run(text, (SLOW,), of=0, disturbed_until_s=20)
    assert len(fakes.sessions) == 3  # two scouts and the run
    assert measured(folder) == [("50 % of capacity", "ok")]


@pytest.mark.slow
def test_a_variant_whose_scouts_were_all_disturbed_is_left_out_until_resumed(fakes: Fakes) -> None:
    text = f"scout = '60s'\n{phases(window('50%'))}"
    folder, record = fakes.run(text, (SLOW,), disturbed_until_s=float("inf"))
    assert not record.scouted_per_s
    (missing,) = read([folder]).missing
    assert "scout failed" in missing and "other programs used" in missing
    assert outcome_code(fakes.resume(folder)) == 0
    assert measured(folder) == [("50 % of capacity", "ok")]


@pytest.mark.slow
def test_a_scout_that_counts_nothing_has_failed(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CAPACITY, SWIFT, 0.0)
    folder = fakes.begin(find_plan("recovery").read_text())
    runs = OneWindowRuns()
    record = fakes.carry_out(folder, runs)
    assert list(record.scouted_per_s) == [SLOW]
    assert {name for name, _ in runs.made} == {SLOW}
    assert outcome_code(record) == 1
    assert any(SWIFT in reason for reason in sheet(read([folder])).left_out)


@pytest.mark.slow
def test_an_engine_that_dies_at_a_share_of_its_capacity_ends_its_run_only(fakes: Fakes) -> None:
    def dies(session: FluidSession) -> None:
        if session.service == SWIFT and len(fakes.sessions) > 1:
            session.dies_at_s = 20  # in the second window

    fakes.change = dies
    text = phases(window("50%", "95%"), SATURATE)
    folder, record = fakes.run(f"scout = '60s'\n{text}")
    assert {run.variant: run.outcome == "ok" for run in record.runs} == {SWIFT: False, SLOW: True}
    outcomes = dict(measured(folder, SWIFT))
    assert outcomes["50 % of capacity"] == "ok"
    assert outcomes["95 % of capacity"] == "the engine ended: out of memory"
    for named in ("95 % of capacity", outcomes["95 % of capacity"]):
        assert named in outcomes["saturation"]


SWEEP = """
fresh = "load"
order = "alternating"
[[phase]]
window = "3s"
settle = "1s"
loads = ["1k", "0", "spike 1k 2k 3s"]
top = { samples = 3, every = "1s" }
decide_within = "9s"
[[phase]]
verify = true
"""


class OneWindowRuns:
    """Makes runs with one window, whose outcomes are given."""

    def __init__(self, *outcomes: str) -> None:
        self.made: list[tuple[str, RunArguments]] = []
        self._outcomes = iter(outcomes)

    def __call__(
        self,
        name: str,
        arguments: RunArguments,
        settings: Settings,
        *_: object,
        part_of: PartOf,
        **__: object,
    ) -> Path:
        self.made.append((name, arguments))
        run = RunFolder.create(settings.logs_folder, name, "fake")
        with run.recording() as record:
            record.part_of, record.outcome = part_of, next(self._outcomes, "ok")
        return run.path


def test_loads_with_samples_of_top_are_experiments_of_their_own(fakes: Fakes) -> None:
    folder = fakes.begin(SWEEP, (SWIFT,))
    runs = OneWindowRuns("ok", "Void: noise.", "ok", "it failed")
    record = fakes.carry_out(folder, runs)
    assert [run.outcome for run in record.runs] == ["ok", "ok", "it failed"]
    made = [arguments for _, arguments in runs.made]
    assert [each.events_per_s for each in made] == [1_000, 0, 0, 1_130]
    assert [each.decide_within_s for each in made] == [9, 0, 0, 0]
    assert [each.samples for each in made] == [3, 3, 3, 23] and all(each.verify for each in made)
    assert all(run.is_done for run in record.runs)


@pytest.mark.slow
def test_engines_are_killed_at_a_share_of_the_capacity_that_their_scouts_found(
    fakes: Fakes,
) -> None:
    folder = fakes.begin(find_plan("recovery").read_text())
    failure = "After the kill, it did not start."
    runs = OneWindowRuns("ok", failure)
    record = fakes.carry_out(folder, runs)
    assert sorted(name for name, _ in runs.made) == sorted(TWO * 5)
    for name, arguments in runs.made:
        assert arguments.events_per_s == pytest.approx(record.scouted_per_s[name] / 2, abs=1)
        assert (arguments.share, arguments.verify) == (0.5, True)
        assert [parse(fault).at_events for fault in arguments.faults] == [500_000]
    assert sorted(str(run.outcome) for run in record.runs) == [failure, *["ok"] * 9]
    assert outcome_code(record) == 1


def test_a_load_whose_backlog_does_not_drain_leaves_no_verdict_on_the_next(fakes: Fakes) -> None:
    folder, _ = fakes.run(phases(window("500k", "500")), (f"{SLOW}[FLINK_HEAP=16g]",))
    _, second = read([folder]).rows
    assert "did not drain" in second.outcome and second.verdict == "none" and not second.values


@pytest.mark.slow
def test_a_resumed_experiment_has_the_settings_that_it_began_with(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_REPLICAS", "2")
    plan = resolve(parse_plan(QUICK, "my"), "my", Options(variants=(SWIFT,), repeats=2))
    folder = begin(plan)
    fakes.interrupt(folder, 1, 1)
    monkeypatch.setenv("ENGINE_REPLICAS", "4")
    record = fakes.resume(folder)
    made = [read_run(folder.parent / str(run.tag)) for run in record.runs if run.tag]
    assert {run.settings["engine_replicas"] for run in made} == {2}
