"""Calibration: runs the calibration engine with known defects, and compares the measurements with
them."""

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from racetrack import engines, host, plugins, terminal
from racetrack.clock import utc_now
from racetrack.config import Settings, load
from racetrack.results.defects import InjectedDefect
from racetrack.stack.runtime import open_stack
from racetrack.terminal import Screen, as_text

if TYPE_CHECKING:
    from racetrack.analysis.calibration import Finding

# Fixed settings, independent of .env, so that results of different machines are comparable.
SETTINGS = {
    "PAGEVIEWS_PARTITIONS": "6",
    "WORKLOAD": plugins.default_workload(),
    "ENGINE_REPLICAS": "1",
}
START_AND_STOP_S = 6.0  # measured: 2.5 s to start, 2.5 s to drain and stop, 1 s in between
TABLE_WIDTH = 100


@dataclass(frozen=True)
class Case:
    """A run of the calibration: the engine's defect, the load, and the durations.

    The run settles for `wait_s`, takes `samples` samples of one second, and needs about `drain_s`
    to drain its backlog.
    """

    defect: InjectedDefect
    pageviews_per_s: int = 3_000
    wait_s: float = 4.0
    samples: int = 10
    drain_s: float = 0.0
    tracer_events_per_s: int = 0
    reads_per_s: int = 0

    @property
    def takes_s(self) -> float:
        """Estimated duration of the run in seconds."""
        return START_AND_STOP_S + self.wait_s + self.samples + self.drain_s

    def __str__(self) -> str:
        return f"{self.defect} at {self.pageviews_per_s:,} pageviews/s"


def _capacity(pageviews_per_s: int) -> Case:
    # Longer than other cases: near its capacity, the engine needs long to drain the backlog of a
    # short pause of the machine.
    return Case(InjectedDefect(capacity_per_s=8_000), pageviews_per_s, wait_s=6.0, samples=20)


# The stall begins while the run settles and ends after the samples. So the window lies within the
# stall, on slow machines too, and the engine can drain afterwards.
_STALL = InjectedDefect(stalled_partition=2, stall_after_s=3, stall_for_s=18)
# With this seed the mean capacity in the window is 4 % above the long-run mean, so the check can
# distinguish the two.
_NOISY = InjectedDefect(
    capacity_per_s=8_000,
    capacity_noise_pct=10,
    capacity_noise_tau_s=8,
    pause_ms=500,
    pause_every_s=10,
    seed=4,
)
CASES = (
    Case(InjectedDefect(delay_ms=0)),
    Case(InjectedDefect(delay_ms=250)),
    Case(InjectedDefect(delay_ms=2_000), wait_s=6.0),
    Case(InjectedDefect(delay_ms=250, cycle_ms=1_000), samples=20),
    # With six partitions, the timestamps of the partitions in an update are 3 ms apart.
    Case(InjectedDefect(delay_ms=250, cycle_ms=1_000, spread_ms=15), samples=20),
    Case(
        # At two reads per second, few reads have to wait for the previous answer.
        InjectedDefect(delay_ms=250, view_behind_ms=1_000, answer_ms=100),
        samples=20,
        tracer_events_per_s=24,
        reads_per_s=2,
    ),
    Case(InjectedDefect(cpu_us_per_pageview=100), samples=20),
    Case(_STALL, drain_s=8.0),
    _capacity(7_600),
    _capacity(8_400),
    Case(_NOISY, 9_600, wait_s=6.0, samples=60, drain_s=14.0),
)
# A run while another program uses 20 % of a core. The harness must detect that and void the run.
NOISY, BURNT_CORES = Case(InjectedDefect()), 0.2
GATE = {"NOISE_GATE": "true", "FOREIGN_CPU_MAX_PCT": "5"}


def run(screen: Screen, guard: terminal.Guard) -> Sequence["Finding"]:
    """Run all cases, print the table and return its rows.

    Raises:
        SetupError, BusyError: the calibration could not begin.
        Interrupted: a signal was received.
    """
    began = time.monotonic()
    screen.heading(
        f"Calibration: {len(CASES) + 1} runs of an engine whose defects are known, about"
        f" {sum(case.takes_s for case in (*CASES, NOISY)) / 60:.1f} minutes"
    )
    prepare(screen)
    where = host.describe()
    load_before = os.getloadavg()[0]
    folders = [_run_case(number, screen, guard) for number in range(len(CASES))]
    found = [*findings(folders), noisy(screen, guard)]
    screen.say(table(found))
    screen.say(
        f"{utc_now()}, {where}, load average {load_before:.1f} before;"
        f" took {(time.monotonic() - began) / 60:.1f} minutes"
    )
    if not all(finding.within for finding in found):
        screen.say(
            "Measurements on this machine are not accurate. If other programs are running, stop"
            " them and try again. The run folders above contain the raw data."
        )
    return found


def prepare(screen: Screen) -> None:
    """Install missing components and print the progress, since the runs themselves print
    nothing."""
    from racetrack.run.checks import make_ready, services_of

    settings, engine = settings_of(InjectedDefect()), engines.calibration_engine()
    stack = open_stack(settings, services_of(engine, settings), screen.say)
    make_ready(engine, stack, screen.say)


def findings(folders: Sequence[Path]) -> list["Finding"]:
    """Return the rows of the table, given the run folders of CASES."""
    from racetrack.analysis import calibration

    defects = [case.defect for case in CASES]
    *delays, sawtooth, spread, trailing, costly, stalled, below, above, noisy = folders
    delay_defects, others = defects[: len(delays)], defects[len(delays) :]
    (
        sawtooth_defect,
        spread_defect,
        trailing_defect,
        cpu_defect,
        stall_defect,
        capacity_defect,
        _,
        noisy_defect,
    ) = others
    return [
        *(
            calibration.delay(folder, defect)
            for folder, defect in zip(delays, delay_defects, strict=True)
        ),
        calibration.waiting(delays[1], delay_defects[1]),
        calibration.sawtooth(sawtooth, sawtooth_defect),
        calibration.sawtooth(spread, spread_defect),
        calibration.view(trailing, trailing_defect),
        calibration.answer(trailing, trailing_defect),
        calibration.cpu(costly, delays[0], cpu_defect),
        calibration.stall(stalled, stall_defect),
        calibration.capacity(below, above, capacity_defect),
        calibration.work(noisy, noisy_defect),
    ]


def noisy(screen: Screen, guard: terminal.Guard) -> "Finding":
    """Make a run while another program uses a known share of a core. Return the finding: whether
    the run measured that share."""
    from racetrack.analysis import calibration
    from racetrack.results.folder import read_run
    from racetrack.run.burner import burning, burnt_pct

    screen.heading(f"[noise] another program with {BURNT_CORES:.0%} of a core beside {NOISY}")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "burnt.csv"
        with burning(BURNT_CORES, file), screen.live(str(NOISY)):
            folder = run_case(NOISY, Screen(Console(quiet=True)), guard, GATE)
        screen.say(f"  {folder}")
        if not (measured := read_run(folder).measured):
            return calibration.foreign(folder, 100 * BURNT_CORES)
        window = measured.window
        return calibration.foreign(folder, burnt_pct(file, window.start_ms, window.end_ms))


def settings_of(defect: InjectedDefect, overrides: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a run of the calibration engine with only this defect."""
    given = {**SETTINGS, **(overrides or {})}
    return load({**given, **engines.calibration_engine().settings_of(defect)})


def run_case(
    case: Case,
    screen: Screen,
    guard: terminal.Guard,
    overrides: Mapping[str, str] | None = None,
) -> Path:
    """Make the run of a case; return the run folder."""
    from racetrack.results.run import RunArguments
    from racetrack.run.experiment import run_once

    arguments = RunArguments(
        pageviews_per_s=case.pageviews_per_s, wait_s=case.wait_s, samples=case.samples, delay_s=1.0
    )
    name = engines.calibration_engine().name
    rates = {
        "TRACER_EVENTS_PER_SECOND": str(case.tracer_events_per_s),
        "READS_PER_SECOND": str(case.reads_per_s),
    }
    given = {**rates, **(overrides or {})}
    folder = run_once(name, arguments, settings_of(case.defect, given), screen, guard)
    guard.rearm()
    return folder


def table(found: Sequence["Finding"]) -> str:
    """Format the findings as a table."""
    shown = Table("programmed", "measured", "bound", "within")
    for finding in found:
        within = "yes" if finding.within else "NO"
        shown.add_row(finding.programmed, escape(finding.measured), finding.bound, within)
    return as_text(shown, TABLE_WIDTH)


def _run_case(number: int, screen: Screen, guard: terminal.Guard) -> Path:
    left_s = sum(case.takes_s for case in CASES[number:])
    what = f"[{number + 1}/{len(CASES)}] {CASES[number]}"
    screen.heading(f"{what}; about {left_s:.0f} s left")
    # The run prints nothing on the screen; its output is in start.log.
    with screen.live(what):
        folder = run_case(CASES[number], Screen(Console(quiet=True)), guard)
    screen.say(f"  {folder}")
    return folder
