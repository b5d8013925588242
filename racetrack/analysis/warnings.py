"""Warnings about the figures of a run, by how much they matter, and caveats for comparisons."""

from enum import StrEnum

from racetrack.analysis import noise
from racetrack.analysis.lag import littles_law_warning
from racetrack.results.figures import Results, TopStatistics, Verdict, VerdictKind
from racetrack.results.run import REDPANDA, RunRecord
from racetrack.results.verification import ViewStatus

SHORT_WINDOW_S = 30.0
BUSY_PCT = 90.0
# Above it, the 99th percentile of lag includes waits for a CPU limit.
THROTTLED_PCT = 1.0
# Tolerances for a difference between top and the kernel's accounting: top counts ticks of 10 ms,
# and its first sample begins about 0.2 s later.
TOP_WITHIN, TOP_WITHIN_S = 0.2, 0.3
NO_COST = "The engine's CPU and memory were not measured: none of its processes is known here."


class Grade(StrEnum):
    """Severities of warnings, the most serious first."""

    WRONG = "Figures may be wrong"
    DOUBTFUL = "Figures are less certain"
    COMPARING = "Before comparing"


def warnings_of(run: RunRecord) -> dict[Grade, list[str]]:
    """Return warnings about the figures, and caveats of the engine, by how much they matter."""
    contradictions = _contradictions(run)
    caveats = []
    if run.known_broker != REDPANDA:
        caveats.append(
            f"Runtime {run.runtime_label}, broker {run.known_broker or 'unknown'}: the experiment"
            " of 2022 used Redpanda and its registry. Don't compare with runs of another runtime"
            " or broker."
        )
    if run.results and not run.results.engine:
        caveats.append(NO_COST)
    return {
        Grade.WRONG: contradictions,
        Grade.DOUBTFUL: [
            warning for warning in measurement_warnings(run) if warning not in contradictions
        ],
        Grade.COMPARING: [*caveats, *caveats_of(run)],
    }


def caveats_of(run: RunRecord) -> list[str]:
    """Return caveats for comparisons: other engines on the machine, missing views, and the engine's
    own."""
    texts = []
    if run.beside:
        others = " and ".join(run.beside)
        texts.append(
            f"{others} read the same input on this machine at the same time. An engine that shares"
            " a machine may lag and cost more than alone: compare only with engines of the same"
            " run."
        )
    return [*texts, *view_caveats(run), *run.caveats]


def measurement_warnings(run: RunRecord) -> list[str]:
    """Return reasons why the figures of a run are less certain than usual."""
    if not (results := run.results):
        return noise.warnings(run)
    texts = [*results.verdict.warnings, *noise.warnings(run)]
    if run.arguments and run.arguments.events_per_s:  # at rate 0 there is no verdict
        texts += _of_window(results.verdict)
    if results.noise and results.noise.machine_busy_pct > BUSY_PCT:
        texts.append(
            f"Busy machine: more than {BUSY_PCT:.0f} % of all cores' time was used. The engine may"
            " have got too little CPU time because of other processes."
        )
    texts += _throttled(run, results)
    return [*texts, *(text for text in _contradictions(run) if text not in texts)]


def _throttled(run: RunRecord, results: Results) -> list[str]:
    """Return a warning for each service that its CPU limit stopped for a relevant time."""
    texts = []
    for name, cost in results.processes.items():
        if cost.throttled_pct is None or cost.throttled_pct <= THROTTLED_PCT:
            continue
        effect = (
            "with a higher limit it may be faster"
            if name in run.engine_services
            else "the engine may have got its input late"
        )
        texts.append(
            f"CPU limit of {name}: it was used up in {cost.throttled_pct:.1f} % of the periods of"
            f" 100 ms, so {effect}. Raise it in the manifest (docs/cluster.md)."
        )
    return texts


def _contradictions(run: RunRecord) -> list[str]:
    """Return warnings about two records of a run that contradict each other."""
    if not (results := run.results):
        return []
    texts = []
    if results.littles_law and not results.littles_law.holds:
        texts.append(littles_law_warning(results.littles_law))
    # With faults, top's figures differ anyway, because processes end between two samples.
    if run.measured and not run.faults:
        seconds = run.measured.window.seconds
        texts += [
            warning
            for name, statistics in results.top.items()
            if (warning := _top_differs(name, statistics, seconds))
        ]
    return texts


def _top_differs(name: str, statistics: TopStatistics, seconds: float) -> str:
    top_pct, kernel_pct = statistics.cpu_pct.mean, statistics.kernel_cpu_pct
    if top_pct is None:
        return ""
    apart_pct = abs(top_pct - kernel_pct)
    apart_s = apart_pct / 100 * seconds
    if apart_pct <= TOP_WITHIN * kernel_pct or apart_s <= TOP_WITHIN_S:
        return ""
    return (
        f"CPU of {name}: top shows {top_pct:.1f} % of a core, the kernel's account"
        f" {kernel_pct:.1f} % over the same seconds. The figures are the kernel's; don't use"
        " top_samples.log."
    )


def _of_window(verdict: Verdict) -> list[str]:
    texts = []
    is_open = verdict.kind is VerdictKind.UNDECIDED
    if is_open and verdict.window_s < SHORT_WINDOW_S:
        texts.append(
            f"Short window, {verdict.window_s:.0f} s: under {SHORT_WINDOW_S:.0f} s it may not"
            f" resolve a growth of {verdict.threshold_pct:g} %."
        )
    if verdict.shortest_window_s:
        texts.append(f"A window of {verdict.shortest_window_s:.0f} s would probably decide.")
    return texts


def absent_views(run: RunRecord) -> list[str]:
    """Return the views that the engine does not create, as it declares or as verification found."""
    absent = run.verified.named(ViewStatus.ABSENT) if run.verified else []
    return list(dict.fromkeys([*run.absent_views, *absent]))


def count_views(run: RunRecord) -> tuple[int, int] | None:
    """Return the engine's number of views and the workload's; None if unknown."""
    count = len(run.verified.views) if run.verified else run.workload_views
    return (count - len(absent_views(run)), count) if count else None


def view_caveats(run: RunRecord) -> list[str]:
    """Return a caveat if the engine does not create all views, since then it has less work."""
    missing, there = absent_views(run), count_views(run)
    if not (missing and there):
        return []
    has = f"{run.engine} has {there[0]} of {there[1]} views, not {', '.join(missing)}"
    return [f"{has}. So it has less work than engines with all views."]
