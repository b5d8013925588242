"""The lines that a run ends with on the terminal: the published ones, then a summary."""

import math
from pathlib import Path

from racetrack.analysis import noise
from racetrack.report import verified
from racetrack.report.figures import NO_COST, SUPPORT, engine_of
from racetrack.results_record import (
    Answers,
    CdcWay,
    Cost,
    Freshness,
    Noise,
    Recovery,
    Results,
    Spread,
    Verdict,
    ViewLag,
    WindowWrites,
)
from racetrack.run_record import DoneFault, RunRecord
from racetrack.runfolder import shown
from racetrack.workload import on_what, workload_of

SHOWN_OF_AN_ERROR = 120
NEXT = (
    "Stop what else runs here (`top` shows it) and run it again. Where a machine is always shared,"
    " NOISE_GATE=false keeps such a run."
)


def sample_lines(results: Results) -> list[str]:
    """`name=…, tag=CPU_PCT, mean=…, sd=…, sem=…, samples=[…]` and `RES_GiB`, for each service but
    those of which the summary tells in short."""
    lines = []
    for name, cost in _without_support(results).items():
        lines.append(_sample_line(name, "CPU_PCT", cost.cpu_pct, "{:.1f}", with_max=False))
        lines.append(_sample_line(name, "RES_GiB", cost.rss_gib, "{:.3f}", with_max=True))
    return lines


def summary(run: RunRecord, folder: Path) -> list[str]:
    """What a person wants to know of a run that has results at a glance, a line each."""
    results, asked = run.results, run.asked
    if not (results and asked):
        return []
    dt, on = results.dt_ms, on_what(run.runtime, workload_of(run.settings))
    lines = [
        f"{run.engine} at {asked.pageviews_per_s:,} pageviews/s ({on}): {run.outcome}",
        (
            f"  rate        asked {asked.pageviews_per_s:,}/s,"
            f" achieved {_number(results.achieved_pageviews_per_s, '{:,.1f}')}/s"
        ),
        *_verdict(results.verdict),
        *map(_view, results.views),
        *([_cdc(results.cdc)] if results.cdc else []),
        *map(_read, results.reads),
        *([_windows(results.window_writes)] if results.window_writes else []),
        *fault_lines(run),
        (
            f"  pageviews   published {results.published_pageviews:,},"
            f" seen by the engine {_number(results.processed_pageviews, '{:,}')}"
        ),
        _delay(dt),
        *_costs(run, results),
        f"  harness     CPU {results.harness.cpu_pct:.1f} % of a core while sampling",
        *_noise(run, results.noise),
        *(f"  caveat      {caveat}" for caveat in (*verified.caveats(run), *run.caveats)),
        *(verified.lines(run.verified) if run.verified else []),
    ]
    return [*lines, f"  logs        {shown(folder)}"]


def _delay(dt: Freshness) -> str:
    if not dt.updates:
        return "  delay       dt_ms n/a: no update in the window"
    return (
        f"  delay       dt_ms mean {_number(dt.mean, '{:,.0f}')},"
        f" p50 {_number(dt.p50, '{:,.0f}')}, max {_number(dt.max, '{:,.0f}')}"
        f" over {dt.updates} updates"
    )


def _costs(run: RunRecord, results: Results) -> list[str]:
    none = [] if engine_of(run) else [f"  {run.engine:<11} {NO_COST}"]
    return [
        *none,
        *(
            line
            for name, cost in _without_support(results).items()
            for line in _cost_lines(name, cost)
        ),
        *_support(results),
    ]


def _cost_lines(name: str, cost: Cost) -> list[str]:
    used = (
        f"  {name:<11} CPU mean {_number(cost.cpu_pct.mean, '{:.1f}')} % of a core,"
        f" memory max {_number(cost.rss_gib.max, '{:.2f}')} GiB,"
        f" {_number(cost.cpu_s_per_million, '{:,.2f}')} CPU-s per million pageviews"
    )
    pss, tmpfs = (of.max if of else None for of in (cost.pss_gib, cost.tmpfs_gib))
    held = f"PSS max {_number(pss, '{:.2f}')} GiB, tmpfs max {_number(tmpfs, '{:.2f}')} GiB"
    if cost.live_heap_gib is not None:
        held += f", live heap {cost.live_heap_gib:.2f} GiB"
    return [used, f"  {'':<11} {held}"]


def _without_support(results: Results) -> dict[str, Cost]:
    return {name: cost for name, cost in results.processes.items() if name not in SUPPORT}


def _support(results: Results) -> list[str]:
    """One line: neither the engine's work nor the load on it."""
    shown = [
        f"{name} {_number(cost.cpu_pct.mean, '{:.1f}')} % of a core,"
        f" {_number(cost.rss_gib.max, '{:.2f}')} GiB"
        for name, cost in results.processes.items()
        if name in SUPPORT
    ]
    return [f"  support     {'; '.join(shown)}"] if shown else []


def _verdict(verdict: Verdict | None) -> list[str]:
    if not verdict:
        return []
    lines = [f"  verdict     {verdict.reason}"]
    if lag := verdict.measured:
        lines.append(
            f"  lag         p50 {_number(lag.lag_p50_ms, '{:,.0f}')} ms,"
            f" p99 {_number(lag.lag_p99_ms, '{:,.0f}')} ms,"
            f" max {_number(lag.lag_max_ms, '{:,.0f}')} ms over time;"
            f" processing lag p50 {_number(lag.processing_lag_p50_ms, '{:,.0f}')} ms"
        )
    if verdict.shortest_window_s:
        lines.append(f"              a window of {verdict.shortest_window_s:.0f} s would decide")
    return [*lines, *(f"  warning     {warning}" for warning in verdict.warnings)]


def _view(view: ViewLag) -> str:
    """How old it was, by what, and the verdict on it."""
    p50, p99, most = (
        _number(ms, "{:,.0f}") for ms in (view.lag_p50_ms, view.lag_p99_ms, view.lag_max_ms)
    )
    return (
        f"  view lag    {view.name}: p50 {p50} ms, p99 {p99} ms, max {most} ms, by"
        f" {_number(view.marks_per_s, '{:g}')} {view.way} a second; {view.kind}"
    )


def _cdc(way: CdcWay) -> str:
    """How old the stages before the engine were."""
    stages = {
        "in the database": way.in_database,
        "sent by CDC": way.sent,
        "in the topic": way.in_topic,
    }
    told = ", ".join(
        f"not {stage} p50 {_ms(of.p50_ms)}, p99 {_ms(of.p99_ms)}"
        for stage, of in stages.items()
        if of
    )
    return f"  inserts     {way.inserts_per_s:g}/s; age of the oldest {told}"


def _windows(told: WindowWrites) -> str:
    """What Yahoo's benchmark would publish, and what it does not show."""
    return (
        f"  windows     {told.windows} of {told.length_ms / 1000:g} s: last written p50"
        f" {_ms(told.after_end_p50_ms)}, max {_ms(told.after_end_max_ms)} after the end; lag"
        f" meanwhile up to {_ms(told.lag_max_ms)}"
    )


def _read(answers: Answers) -> str:
    """How long they took and how old they were."""
    told = f"  read        {answers.question}: {answers.answered} of {answers.due} answered"
    if answers.rows_max is not None:
        told += f" with up to {answers.rows_max:,} rows"
    for what, of in (("time", answers.time), ("age", answers.age)):
        if of:
            told += f", {what} p50 {_ms(of.p50_ms)}, p99 {_ms(of.p99_ms)}"
    if answers.errors:
        told += f"; {answers.errors} errors: {(answers.first_error or '')[:SHOWN_OF_AN_ERROR]}"
    return told


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if math.isfinite(value) else "without end"


def _noise(run: RunRecord, found: Noise | None) -> list[str]:
    if not found:
        return []
    foreign, speed = _number(found.sampled.foreign_cpu_pct, "{:.1f}"), ""
    if found.sampled.core:
        speed = f"; a core at {found.sampled.core.pct:.0f} % of its fastest"
    if run.spin:
        after = _number(run.spin.after_mib_per_s, "{:,.0f}")
        speed += f"; a core did {run.spin.before_mib_per_s:,.0f} MiB/s before, {after} after"
    lines = [
        (
            f"  noise       other programs {foreign} % of a core,"
            f" stolen {found.sampled.steal_pct:.1f} % of all CPU time{speed}"
        ),
        *(f"  warning     {warning}" for warning in noise.warnings(run)),
    ]
    if noise.is_void(run.outcome):
        lines.append(f"  next        {NEXT}")
    return lines


def fault_lines(run: RunRecord) -> list[str]:
    """What was done on purpose, how long it took to undo, and when lag was normal again."""
    if not (run.faults and run.results):
        return []
    lines = []
    for done, came_back in zip(run.faults.done, run.results.faults, strict=False):
        lags = [f"lag of {name} {_back(lag)}" for name, lag in came_back.lags.items()]
        lines.append(f"  fault       {done.fault}: {', '.join([*_took(done), *lags])}")
    return lines


def _took(done: DoneFault) -> list[str]:
    took = (("up again in", done.restart_s), ("demo loaded again in", done.reload_s))
    return [f"{what} {seconds:.1f} s" for what, seconds in took if seconds]


def _back(recovery: Recovery) -> str:
    if recovery.after_s is None:
        return "never normal again while it was watched"
    worst = _number(recovery.worst_ms, "{:,.0f}")
    if recovery.after_s == 0:
        return f"never above normal (at most {worst} ms)"
    return f"normal again after {recovery.after_s:.1f} s (at most {worst} ms)"


def _sample_line(name: str, tag: str, spread: Spread, form: str, *, with_max: bool) -> str:
    shown = {"mean": spread.mean, "sd": spread.sd, "sem": spread.sem}
    if with_max:
        shown["max"] = spread.max
    values = ", ".join(f"{key}={_number(value, form)}" for key, value in shown.items())
    samples = ", ".join(form.format(sample) for sample in spread.samples)
    return f"name={name}, tag={tag}, {values}, samples=[{samples}]"


def _number(value: float | None, form: str) -> str:
    return "n/a" if value is None or not math.isfinite(value) else form.format(value)
