"""Calibration: runs the plan `calibrate`, of an engine with known defects, and compares what was
measured with them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from racetrack.analysis import calibration as check
from racetrack.analysis.calibration import Finding
from racetrack.metrics import FOREIGN_CPU
from racetrack.plan.resolve import recorded
from racetrack.results.defects import InjectedDefect
from racetrack.results.experiment import ExperimentRecord
from racetrack.results.folder import read_run, run_beside
from racetrack.run.burner import burnt_pct
from racetrack.run.runner import burnt_file
from racetrack.terminal import as_text

PLAN = "calibrate"
TABLE_WIDTH = 100
Check = Callable[[Path, InjectedDefect], Finding]
# Label of a run in the plan, what is checked, and how.
CHECKS: Sequence[tuple[str, str, Check]] = (
    ("instant", "lag", check.delay),
    ("delayed", "lag", check.delay),
    ("late", "lag", check.delay),
    ("delayed", "waiting events", check.waiting),
    ("cycle", "lag with rare updates", check.sawtooth),
    ("spread", "lag with rare updates", check.sawtooth),
    ("view", "view lag", check.view),
    ("view", "reads", check.answer),
    ("stall", "stall", check.stall),
    ("unsteady", "throughput", check.work),
)
WITHOUT_COST, COSTLY, LIMITED, DISTURBED = "instant", "costly", "limited", "disturbed"
# Labels of runs through an observation path without a delay; the run with one has the label
# followed by DELAYED.
PATHS, DELAYED = ("topic", "postgres", "deephaven", "redis"), ", delayed"


def findings(folder: Path, record: ExperimentRecord) -> list[Finding]:
    """Return the rows of the table, from the experiment in a folder. Runs that were not made have
    none."""
    made = _folders(folder, record)
    return [replace(finding, what=what) for what, finding in _findings(folder, record, made)]


def _findings(
    folder: Path, record: ExperimentRecord, made: Mapping[str, Sequence[Path]]
) -> Iterator[tuple[str, Finding]]:
    for label, what, finding_of in CHECKS:
        for path in made.get(label, ()):
            yield what, _failed(path) or finding_of(path, _defect(path))
    for label in PATHS:
        if label in made and label + DELAYED in made:
            (without,), (late,) = made[label], made[label + DELAYED]
            failed = _failed(late) or _failed(without)
            yield "observation path", failed or check.path(late, without, _defect(late))
    if COSTLY in made and WITHOUT_COST in made:
        (costly,), (without,) = made[COSTLY], made[WITHOUT_COST]
        failed = _failed(costly) or _failed(without)
        yield "CPU cost", failed or check.cpu(costly, without, _defect(costly))
    if len(limited := made.get(LIMITED, ())) == 2:
        below, above = limited
        failed = _failed(below) or _failed(above)
        yield "verdict", failed or check.capacity(below, above, _defect(below))
    if DISTURBED in made:
        yield FOREIGN_CPU.title, _foreign(folder, record, *made[DISTURBED])


def _folders(folder: Path, record: ExperimentRecord) -> dict[str, list[Path]]:
    """Return the run folders of each label, in order."""
    made: dict[str, list[Path]] = {}
    for run in record.runs:
        if run.tag and (path := run_beside(folder, run.tag)):
            made.setdefault(run.variant, []).append(path)
    return made


def _defect(path: Path) -> InjectedDefect:
    return InjectedDefect.of_settings(read_run(path).settings)


def _failed(path: Path) -> Finding | None:
    """Return the row of a run that has no figures; None if it has."""
    outcome = read_run(path).outcome
    return None if outcome == "ok" else Finding(str(_defect(path)), outcome, "", within=False)


def _foreign(folder: Path, record: ExperimentRecord, path: Path) -> Finding:
    """Compare the CPU use of other programs in a run with what the program that disturbed it has
    recorded."""
    (number,) = (run.cell for run in record.runs if run.tag == path.name)
    if not (measured := read_run(path).measured):
        cell = recorded(record).cells[number]
        return check.foreign(path, 100 * cell.disturb)
    window = measured.window
    burnt = burnt_pct(folder / burnt_file(number), window.start_ms, window.end_ms)
    return check.foreign(path, burnt)


def table(rows: Sequence[Finding]) -> str:
    """Format the findings as a table."""
    shown = Table("programmed", "measured", "bound", "within")
    for finding in rows:
        within = "yes" if finding.within else "NO"
        shown.add_row(finding.programmed, escape(finding.measured), finding.bound, within)
    return as_text(shown, TABLE_WIDTH)
