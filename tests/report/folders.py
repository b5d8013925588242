"""Run folders as the harness itself writes them: a real Experiment, whose session plays back
synthetic curves instead of running an engine. So tests always read the current format."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console

from racetrack.config import Settings, load
from racetrack.plan.model import Phase, Saturate, Search, Top
from racetrack.plan.model import Window as WindowPhase
from racetrack.plan.resolve import Cell, ResolvedPlan
from racetrack.probes.noise import COLUMNS
from racetrack.results import folder as runfolder
from racetrack.results.classes import Classes
from racetrack.results.experiment import ExperimentRecord, ExperimentRun, write_experiment
from racetrack.results.folder import RunFolder
from racetrack.results.run import (
    Counts,
    CpuTime,
    DoneFault,
    FaultLog,
    LoadLog,
    Measured,
    PartOf,
    RunArguments,
    Window,
    WindowRecord,
)
from racetrack.results.verification import Verified
from racetrack.run.experiment import Experiment
from racetrack.run.session import Session
from racetrack.stack.contract import Stack
from racetrack.terminal import Guard, Screen
from racetrack.workloads.load_profile import LoadProfile
from simulations import synthetic
from tests.analysis import view_files
from tests.run.fakes import FakeEngine, FakeStack
from tests.run_json import read_run

SERVICE = {"steady": "steadyd", "swift": "swiftd"}
READS_PER_S = 2
SERVED = Classes(
    results="served",
    after_a_kill="reads all input again",
    work="as events arrive",
    views="declarative",
    changes="follows changes",
)
PUBLISHED = SERVED.model_copy(update={"results": "published to Kafka", "after_a_kill": "resumes"})
WHEN_READ = SERVED.model_copy(update={"work": "when read"})


@dataclass(frozen=True)
class RunSpec:
    """Shape of a synthetic run; CPU in percent of a core, memory in GiB."""

    engine: str = "steady"
    rate: int = 4_000
    cpu_pct: float = 40.0
    rss_gib: float = 1.0
    delay_ms: float = 500.0
    leak: float = 0.0
    runtime: str = "native"
    window_s: float = 30.0
    seed: int = 1
    recorded_after_s: float = 1.0
    lost: int = 0
    silent: bool = False  # all updates come after the window
    foreign_pct: float | None = None  # None: the runtime can't measure it
    core_mib_per_s: float = 1_000.0
    memory_read_ns: float = 20.0
    busy_cores: float = 1.0  # of the machine's two
    top_share: float = 1.0  # share of the CPU that top shows
    elsewhere: bool = False  # the engine runs where its processes can't be sampled
    view_delay_ms: float | None = None  # None: no tracer events
    view_leak: float = 0.0
    read_ms: float | None = None  # duration of answers; None: no reads
    caveats: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  # the views that the engine can't express
    verified: dict[str, Any] | None = None  # a verification's result, if any
    settings: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)


class PlayedBack:
    """A stand-in for `racetrack.run.session.Session` that writes and returns the same things."""

    def __init__(self, spec: RunSpec, folder: RunFolder) -> None:
        self._spec, self._folder, self._recording = spec, folder.path, folder.recording
        self._race = synthetic.SyntheticRun(
            window_s=spec.window_s,
            rate_per_s=spec.rate,
            recorded_after_ms=1_000 * spec.recorded_after_s,
            delay_ms=spec.delay_ms,
            leak=spec.leak,
            pause_at_ms=-2_000 if spec.silent else None,
            pause_ms=1000 * spec.window_s + 2_500 if spec.silent else 0,
        )
        self._rng = np.random.default_rng(spec.seed)
        self._rates_set: list[int] = []
        self._shares = {SERVICE.get(spec.engine, spec.engine): 1.0, "broker": 0.5, "loadgen": 0.1}
        if spec.elsewhere:
            del self._shares[SERVICE.get(spec.engine, spec.engine)]

    def start_stack(self) -> None:
        record = read_run(self._folder)
        assert record["outcome"] == "unfinished"

    def run_demo(self) -> None:
        synthetic.write(synthetic.curves(self._race, self._rng), self._folder)
        if (delay_ms := self._spec.view_delay_ms) is not None:
            traced = runfolder.read_run(self._folder).traced_views
            from_ms = int(self._race.window[0] - synthetic.WARM_UP_MS)
            rest = delay_ms, self._spec.view_leak, from_ms, self._race.partitions
            view_files.write(self._folder, traced, *rest)
        if (read_ms := self._spec.read_ms) is not None:
            record = runfolder.read_run(self._folder)
            traced_of = {view.name: view for view in record.traced_views}
            arguments = {one.name: traced_of.get(one.traced_view or "") for one in record.queries}
            from_ms = int(self._race.window[0] - synthetic.WARM_UP_MS)
            how = self._spec.view_delay_ms or 0, read_ms, READS_PER_S
            view_files.write_reads(self._folder, arguments, *how, from_ms, self._race.partitions)

    def set_rate(self, events_per_s: int) -> int:
        self._rates_set.append(events_per_s)
        return int(self._race.window[0] - synthetic.WARM_UP_MS)

    def begin_faults(self) -> None:
        """Record the faults, from the tenth second of the window on, five seconds long each."""
        from_ms = int(self._race.window[0]) - 5_000
        done = tuple(
            DoneFault(
                fault=fault,
                how=fault.partition(":")[0],
                services=("debezium",),
                at_ms=from_ms + 15_000,
                until_ms=from_ms + 20_000,
                restart_s=4.5,
                reload_s=None,
            )
            for fault in self._spec.arguments.get("faults", ())
        )
        if done:
            with self._recording() as run:
                run.faults = FaultLog(from_ms=from_ms, done=done)
            # One purchase every three ticks of 100 ms; none is captured while Debezium is down.
            captured = [150 if 150 < n < 200 else n for n in range(350)]
            rows = [
                f"{from_ms + 100 * n},{n // 3},0,{n // 3},{1000 + captured[n] // 3},0"
                for n in range(350)
            ]
            text = "\n".join(["at_ms,due,refused,done,captured,sent_ms", *rows]) + "\n"
            (self._folder / "purchases.csv").write_text(text)

    def begin_load(self, profile: LoadProfile) -> None:
        """Record a spike from the tenth second of the window on."""
        from_ms = int(self._race.window[0])
        with self._recording() as run:
            run.load = LoadLog(
                profile=str(profile),
                from_ms=from_ms,
                peak_from_ms=from_ms + 10_000,
                peak_until_ms=from_ms + 15_000,
            )

    def stop(self, *_: object) -> None:
        """Do nothing, like the other steps below."""

    watch = watch_recovery = sample_memory = write_live_heaps = stop

    def sample(self, samples: int, rate_set_ms: int) -> Measured:
        half = [self._spec.rate // 2] if self._spec.arguments.get("warm_up_s") else []
        assert self._rates_set == [*half, self._spec.rate]
        start_ms, end_ms = map(int, self._race.window)
        seconds = range(-6, int(self._spec.window_s + self._spec.recorded_after_s) + 1)
        rate, engine = self._spec.rate, self._spec.engine
        cpu = self._spec.cpu_pct + self._rng.normal(0, 2, len(seconds))
        used = np.cumsum(cpu) / 100
        rows, arrivals, delays, top = [], [], [], []
        for n, s in enumerate(seconds):
            at = start_ms + 1000 * s
            due = rate * (s + 6)
            arrivals.append(f"{at},{due},{due}")
            if not self._spec.silent or not 0 <= s <= self._spec.window_s:
                delays.append(f"timestamp={at}, total={due}, max_received_at={at - 50}, dt_ms=50.5")
            for name, share in self._shares.items():
                rss = self._spec.rss_gib * share + 0.001 * n
                of_engine = name != "loadgen"
                mine_s = used[n] * share if of_engine else 0.04 * (n + 1)
                rows.append(f"{at},{name},{mine_s:.2f},{0.8 * mine_s:.2f},{rss:.6f}")
                if 0 <= s < samples and name != "loadgen":
                    line = f"CPU_PCT={cpu[n] * share * self._spec.top_share:.1f}, RES_GiB={rss:.1f}"
                    top.append(f"name={name}, sample={s + 1}, {line}")
        files = {
            "arrivals.csv": ["at_ms,due,handed_over", *arrivals],
            "usage.csv": ["at_ms,service,cpu_s,cpu_user_s,rss_gib", *rows],
            "top_samples.log": top,
            f"{engine}_sample_dt.log": delays,
        }
        if (foreign_pct := self._spec.foreign_pct) is not None:
            used_s = self._spec.busy_cores + foreign_pct / 100
            noise = [
                f"{at},{2 * s},{100 + used_s * s},0,{90 + used_s * s},"
                f"{80 + self._spec.busy_cores * s},0,0.5,,,,,{self._spec.core_mib_per_s},,"
                f"{self._spec.memory_read_ns}"
                for at, s in ((start_ms + 1000 * s, s) for s in seconds)
            ]
            files["noise.csv"] = [",".join(COLUMNS), *noise]
        for name, lines in files.items():
            (self._folder / name).write_text("\n".join(lines) + "\n")
        total_s = self._spec.cpu_pct / 100 * self._spec.window_s
        cpu_s = {
            name: CpuTime(user=0.8 * total_s * share, system=0.2 * total_s * share)
            for name, share in self._shares.items()
        }
        window = Window(start_ms=start_ms, end_ms=end_ms)
        return Measured(window=window, cpu_s=cpu_s, rate_set_ms=rate_set_ms)

    def account(self) -> dict[str, Counts]:
        counts = (self._spec.rate * 9,) * 4
        _, end_ms = map(int, self._race.window)
        found = Counts(
            paused_ms=end_ms + round(1000 * self._spec.recorded_after_s),
            handed_over=tuple(count + self._spec.lost for count in counts),
            refused=(0, 0, 0, 0),
            end_offsets=counts,
            engine_total=sum(counts),
            engine_drained=True,
        )
        return dict.fromkeys(self._spec.engine.split("+"), found)

    def verify(self) -> dict[str, Verified]:
        found = Verified.model_validate(self._spec.verified)
        return dict.fromkeys(self._spec.engine.split("+"), found)


class PlayedEngine(FakeEngine):
    """An engine whose runs are played back."""

    script_ending = ".sql"

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(needs=())
        self.name, self.title, self._spec = spec.engine, spec.engine, spec
        self.services = (SERVICE.get(spec.engine, spec.engine),)

    def caveats(self, settings: Settings) -> list[str]:
        return list(self._spec.caveats)

    def classes(self, settings: Settings) -> Classes:
        return SERVED

    def absent_views(self, settings: Settings) -> Sequence[str]:
        return self._spec.absent


def stack_of(spec: RunSpec) -> Stack:
    """Return the stack of a run that is played back."""
    marks = {} if spec.view_delay_ms is None else {"TRACER_EVENTS_PER_SECOND": "10"}
    reads = {} if spec.read_ms is None else {"READS_PER_SECOND": str(READS_PER_S)}
    return FakeStack(load({**marks, **reads, **spec.settings}), spec.runtime).as_stack()


OF_A_VIEW = {"from_ms": synthetic.START_MS, "until_ms": synthetic.START_MS + 5}
RIGHT = {"status": "right", "compared": 7, **OF_A_VIEW}
ROW = {
    "finding": "different",
    "source": {"item_id": 7, "revenue": "12.5"},
    "engine": {"item_id": 7, "revenue": "<b>13</b>"},
}
WRONG = {"status": "wrong", "compared": 7, "different": 1, "first": [ROW], **OF_A_VIEW}
ABSENT = {"status": "absent"}
UNREADABLE = {"status": "unreadable", "reason": "it is gone"}


def run(logs: Path, spec: RunSpec, tag: str | None = None) -> Path:
    """Write a run folder under `logs` with the harness's own code; return it."""
    number = len(list(logs.iterdir())) if logs.is_dir() else 0
    path = logs / (tag or f"2026.03.22.05.{number // 60:02}.{number % 60:02}_UTC_run")
    (path / "stack").mkdir(parents=True)
    folder = RunFolder(path, spec.engine)
    arguments = RunArguments(
        **{
            "events_per_s": spec.rate,
            "wait_s": 5.0,
            "samples": int(spec.window_s),
            "delay_s": 1.0,
            "verify": spec.verified is not None,
            **spec.arguments,
        }
    )
    Experiment(
        arguments,
        PlayedEngine(spec),
        stack_of(spec),
        folder,
        Screen(Console(quiet=True)),
        open_session=lambda *_: cast(Session, PlayedBack(spec, folder)),
    ).run(Guard(lambda _: None))
    return path


def session(logs: Path, spec: RunSpec, tag: str, replay_of: str | None = None) -> None:
    """Write the folder of a session, in whose third second the rate is set, or of a replay."""
    path = run(logs, spec, tag)
    from_ms = read_run(path)["measured"]["window"]["start_ms"]
    edit(path, live={"from_ms": from_ms, "replay_of": replay_of})
    row = f'{from_ms + 2000},1,rate,"{{""per_s"": 5000}}",user'
    (path / "actions.csv").write_text(f"at_ms,segment,action,arguments,by\n{row}\n")


def edit(path: Path, **changes: Any) -> None:
    """Change `run.json`, for example to what an older version or an attacker would have written."""
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, **changes}))


@dataclass(frozen=True)
class PlannedRun:
    """A run of an experiment. Without `windows` it has just the one that its results describe. If
    it has not begun, it has no folder; `outcome` may be why. Runs of a variant and repeat on
    several stacks have rising numbers `leg`."""

    spec: RunSpec
    windows: tuple[WindowRecord, ...] = ()
    repeat: int = 1
    leg: int = 1
    variant: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    outcome: str | None = "ok"
    begun: bool = True

    @property
    def label(self) -> str:
        """Label of the variant."""
        return self.variant or self.spec.engine


def experiment(
    logs: Path,
    plan: str,
    runs: Sequence[PlannedRun],
    command: str = "./race compare",
    note: str = "",
) -> Path:
    """Write the folder of an experiment under `logs`, and the folders of its runs beside it, as the
    runner does."""
    made = len(list(logs.glob("*_UTC_*"))) if logs.is_dir() else 0
    folder = logs / f"2026.03.22.{4 + made // 60:02}.{made % 60:02}.00_UTC_{plan}"
    folder.mkdir(parents=True)
    cells = tuple(_cell(run) for run in runs)
    variants, repeats = dict.fromkeys(run.label for run in runs), max(run.repeat for run in runs)
    resolved = ResolvedPlan(
        name=plan, variants=tuple(variants), cells=cells, repeats=repeats, seed=1, note=note
    )
    entries = tuple(
        ExperimentRun(
            variant=cell.variant,
            repeat=cell.repeat,
            loads=cell.loads,
            cell=number,
            tag=_run_of(logs, folder.name, planned).name if planned.begun else None,
            outcome=planned.outcome,
        )
        for number, (planned, cell) in enumerate(zip(runs, cells, strict=True))
    )
    record = ExperimentRecord(
        name=plan,
        command=command,
        seed=1,
        plan=resolved.model_dump(mode="json", by_alias=True),
        runs=entries,
        minutes=12.5,
    )
    write_experiment(folder, record)
    return folder


def _cell(planned: PlannedRun) -> Cell:
    """Return the cell of a plan that measures such windows."""
    names = [window.name for window in planned.windows]
    loads = tuple(str(window.per_s) for window in planned.windows if window.per_s)
    top = Top(samples=int(planned.spec.window_s), every=1.0)
    phases: list[Phase] = []
    if not names:
        loads = (str(planned.spec.rate),)
        phases.append(WindowPhase(window=planned.spec.window_s, settle=5.0, top=top, loads=loads))
    elif loads:
        phases.append(WindowPhase(window=10.0, settle=3.0, loads=loads))
    if "search" in names:
        phases = [Search(search=(2.0, 5.0))]
    if "saturation" in names:
        phases.append(Saturate(saturate=20.0))
    return Cell(
        variant=planned.label,
        engine=planned.spec.engine,
        repeat=planned.repeat,
        settings=planned.settings,
        phases=tuple(phases),
        leg=planned.leg,
    )


def _run_of(logs: Path, experiment: str, planned: PlannedRun) -> Path:
    """Write the folder of a run of an experiment."""
    path = run(logs, planned.spec)
    part = PartOf(experiment=experiment, variant=planned.label, repeat=planned.repeat)
    edit(path, part_of=part.model_dump())
    if planned.windows:
        windows = [window.model_dump(mode="json") for window in planned.windows]
        whole = {"results": None, "measured": None}
        edit(path, **whole, windows=windows, outcome=planned.outcome or "unfinished")
    return path


def window_at(
    per_s: int | None, *, share: float | None = None, name: str = "", **values: Any
) -> WindowRecord:
    """Return a window of a run, 5 s long; at saturation if there is no rate."""
    load = f"{100 * share:g} % of capacity" if share else f"{per_s:,}/s" if per_s else "saturation"
    start_ms, verdict = int(synthetic.START_MS), "kept up" if per_s else "none"
    times = {"start_ms": start_ms, "end_ms": start_ms + 5_000}
    record = {"name": name or load, "per_s": per_s, "share": share, "verdict": verdict}
    return WindowRecord(**{**record, **times, **values})


def search(logs: Path, engine: str, per_s: float, why: str = "", **of_spec: Any) -> Path:
    """Write an experiment that searches for sustained rates, and the folders of its two runs. The
    rate that is sustained within a lag of 2 s is 0.9 of the capacity. `why` is the outcome of a
    first run that failed, after which there is no second one. `of_spec` are fields of `RunSpec`."""
    spec = RunSpec(engine=engine, window_s=5.0, **of_spec)
    saturation = window_at(None, figures={"capacity_per_s": per_s, "idle_share_pct": 0.0})
    if why:
        failed = saturation.model_copy(update={"outcome": why, "figures": {}})
        unknown = "its capacity is unknown: it was not measured"
        first = PlannedRun(spec, (failed,), outcome=why)
        return experiment(
            logs, "limit", [first, PlannedRun(spec, leg=2, outcome=unknown, begun=False)]
        )
    trials = [
        window_at(
            round(share * per_s),
            share=share,
            name=f"trial at {100 * share:g} % of capacity",
            figures={"lag_p99_ms": lag_ms, "achieved_events_per_s": share * per_s},
        )
        for share, lag_ms in ((0.9, 1_500.0), (0.95, 3_500.0))
    ]
    sustained = {
        "sustained_1s_per_s": round(0.9 * per_s),
        "sustained_5s_per_s": round(0.95 * per_s),
    }
    within = window_at(None, name="search", figures=sustained, at_least=("sustained_5s_per_s",))
    second = (*trials, within, saturation)
    runs = [PlannedRun(spec, (saturation,)), PlannedRun(spec, second, leg=2)]
    return experiment(logs, "limit", runs, f"./race limit {engine}")
