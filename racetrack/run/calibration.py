"""Calibration: runs the calibration engine with known defects, and compares the measurements with
them."""

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from racetrack import engines, host, plugins, terminal
from racetrack.analysis import calibration as check
from racetrack.analysis.calibration import Finding
from racetrack.clock import utc_now
from racetrack.config import Settings, load
from racetrack.results.defects import InjectedDefect
from racetrack.results.folder import read_run
from racetrack.results.run import RunArguments
from racetrack.run.burner import burning, burnt_pct
from racetrack.run.experiment import run_once
from racetrack.run.lifecycle import prepared
from racetrack.terminal import Screen, as_text

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


_INSTANT = Case(InjectedDefect(delay_ms=0))
_DELAYED = Case(InjectedDefect(delay_ms=250))
_LATE = Case(InjectedDefect(delay_ms=2_000), wait_s=6.0)
_CYCLE = Case(InjectedDefect(delay_ms=250, cycle_ms=1_000), samples=20)
# The defect spreads the timestamps of an update over 15 ms: with six partitions, they are 3 ms
# apart.
_SPREAD = Case(InjectedDefect(delay_ms=250, cycle_ms=1_000, spread_ms=15), samples=20)
_VIEW = Case(
    # At this rate of reads, hardly any read has to wait for the previous answer.
    InjectedDefect(delay_ms=250, view_behind_ms=1_000, answer_ms=100),
    samples=20,
    tracer_events_per_s=24,
    reads_per_s=2,
)
_COSTLY = Case(InjectedDefect(cpu_us_per_pageview=100), samples=20)
# The stall begins while the run settles and ends after the samples. So the window lies within the
# stall, on slow machines too, and the engine can drain afterwards.
_STALL = Case(
    InjectedDefect(stalled_partition=2, stall_after_s=3, stall_for_s=18),
    drain_s=8.0,
)
# This case takes longer than others: near its capacity, the engine needs long to drain the backlog
# that a short pause of the machine leaves.
_BELOW = Case(InjectedDefect(capacity_per_s=8_000), 7_600, wait_s=6.0, samples=20)
_ABOVE = replace(_BELOW, pageviews_per_s=8_400)
# With this seed the mean capacity in the window is 4 % above the long-run mean, so the check can
# distinguish the two.
_UNSTEADY = Case(
    InjectedDefect(
        capacity_per_s=8_000,
        capacity_noise_pct=10,
        capacity_noise_tau_s=8,
        pause_ms=500,
        pause_every_s=10,
        seed=4,
    ),
    9_600,
    wait_s=6.0,
    samples=60,
    drain_s=14.0,
)
_OF_DELAYS = (_INSTANT, _DELAYED, _LATE, _CYCLE, _SPREAD, _VIEW)
CASES = (*_OF_DELAYS, _COSTLY, _STALL, _BELOW, _ABOVE, _UNSTEADY)
# A run while another program uses 20 % of a core. The harness must detect that and void the run.
NOISY, BURNT_CORES = Case(InjectedDefect()), 0.2
GATE = {"NOISE_GATE": "true", "FOREIGN_CPU_MAX_PCT": "5"}


def run(screen: Screen, guard: terminal.Guard) -> Sequence[Finding]:
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
    found = [*findings(folders), replace(noisy(screen, guard), what="foreign CPU")]
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
    prepared(engines.calibration_engine().name, settings_of(InjectedDefect()), screen.say)


def findings(folders: Sequence[Path]) -> list[Finding]:
    """Return the rows of the table, given the run folders of CASES."""
    folder = dict(zip(CASES, folders, strict=True))

    def of(case: Case) -> tuple[Path, InjectedDefect]:
        return folder[case], case.defect

    found = [
        *(("lag", check.delay(*of(case))) for case in (_INSTANT, _DELAYED, _LATE)),
        ("waiting pageviews", check.waiting(*of(_DELAYED))),
        *(("lag with rare updates", check.sawtooth(*of(case))) for case in (_CYCLE, _SPREAD)),
        ("view lag", check.view(*of(_VIEW))),
        ("reads", check.answer(*of(_VIEW))),
        ("CPU cost", check.cpu(folder[_COSTLY], folder[_INSTANT], _COSTLY.defect)),
        ("stall", check.stall(*of(_STALL))),
        ("verdict", check.capacity(folder[_BELOW], folder[_ABOVE], _BELOW.defect)),
        ("throughput", check.work(*of(_UNSTEADY))),
    ]
    return [replace(finding, what=what) for what, finding in found]


def noisy(screen: Screen, guard: terminal.Guard) -> Finding:
    """Make a run while another program uses a known share of a core. Return the finding: whether
    the run measured that share."""
    screen.heading(f"[noise] another program with {BURNT_CORES:.0%} of a core beside {NOISY}")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "burnt.csv"
        with burning(BURNT_CORES, file), screen.live(str(NOISY)):
            folder = run_case(NOISY, Screen(Console(quiet=True)), guard, GATE)
        screen.say(f"  {folder}")
        if not (measured := read_run(folder).measured):
            return check.foreign(folder, 100 * BURNT_CORES)
        window = measured.window
        return check.foreign(folder, burnt_pct(file, window.start_ms, window.end_ms))


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


def table(found: Sequence[Finding]) -> str:
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
