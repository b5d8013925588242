"""What a run prints at its end: a summary of at most a dozen lines, and top's samples if asked."""

import math
from pathlib import Path

from racetrack.analysis import noise
from racetrack.report import verified
from racetrack.report.definitions import significant
from racetrack.report.figures import NO_COST, SUPPORT, measurement_warnings
from racetrack.results.figures import (
    Answers,
    CdcWay,
    Cost,
    Freshness,
    Lag,
    MemoryMax,
    NoiseFigures,
    Recovery,
    Results,
    Spread,
    ViewLag,
    WindowWrites,
)
from racetrack.results.folder import shown
from racetrack.results.run import DoneFault, RunRecord
from racetrack.workloads.contract import run_label, workload_of

SHOWN_OF_AN_ERROR = 120
NEXT = (
    "Stop what else runs here (`top` shows it) and run it again. Where a machine is always shared,"
    " NOISE_GATE=false keeps such a run."
)


def format_samples(results: Results) -> list[str]:
    """Return top's samples in the published format: `name=…, tag=CPU_PCT, mean=…, sd=…, sem=…,
    samples=[…]` and `RES_GiB`, for each service but those of the support."""
    lines = []
    for name, of in results.top.items():
        if name not in SUPPORT:
            lines.append(_sample_line(name, "CPU_PCT", of.cpu_pct, "{:.1f}", with_max=False))
            lines.append(_sample_line(name, "RES_GiB", of.rss_gib, "{:.3f}", with_max=True))
    return lines


def describe_run(run: RunRecord, folder: Path) -> list[str]:
    """Return what a person wants to know at a glance of a run that has results, a line each."""
    results, asked = run.results, run.asked
    if not (results and asked):
        return []
    on = run_label(run.runtime, workload_of(run.settings))
    lines = [
        f"{run.engine} at {asked.pageviews_per_s:,} pageviews/s ({on}): {run.outcome}",
        _line("verdict", results.verdict.reason),
        *([_lag(lag)] if (lag := results.verdict.measured) else []),
        *map(_view, results.views),
        *([_cdc(results.cdc)] if results.cdc else []),
        *map(_read, results.reads),
        *([_windows(results.window_writes)] if results.window_writes else []),
        *describe_faults(run),
        _delay(results.dt_ms),
        _rate(asked.pageviews_per_s, results),
        *_costs(run, results),
        *_noise(results.noise),
        *(_line("warning", warning) for warning in measurement_warnings(run)),
        *([_line("next", NEXT)] if noise.is_void(run.outcome) else []),
        *(_line("caveat", caveat) for caveat in (*verified.caveats(run), *run.caveats)),
        *(verified.lines(run.verified) if run.verified else []),
    ]
    return [*lines, _line("logs", shown(folder))]


def _line(name: str, text: str) -> str:
    return f"  {name:<11} {text}"


def _lag(lag: Lag) -> str:
    return _line(
        "lag",
        f"median {_ms(lag.lag_p50_ms)}, 99 % of the time at most {_ms(lag.lag_p99_ms)}, max"
        f" {_ms(lag.lag_max_ms)}; right after an update (processing lag): median"
        f" {_ms(lag.processing_lag_p50_ms)}",
    )


def _delay(dt: Freshness) -> str:
    if not dt.updates:
        return _line("delay", "dt_ms n/a: no update in the judged window")
    return _line(
        "delay",
        f"dt_ms median {_number(dt.p50, '{:,.0f}')}, mean {_number(dt.mean, '{:,.0f}')},"
        f" max {_number(dt.max, '{:,.0f}')} over {dt.updates} update{'s' * (dt.updates != 1)}",
    )


def _rate(asked_per_s: int, results: Results) -> str:
    achieved = _number(results.achieved_pageviews_per_s, "{:,.0f}")
    offered = f"{achieved} of {asked_per_s:,} pageviews/s"
    if not asked_per_s:
        offered = f"{achieved} pageviews/s, which purchases bring"
    return _line(
        "rate",
        f"{offered}; in the whole run"
        f" {results.published_pageviews:,} published,"
        f" {_number(results.processed_pageviews, '{:,}')} counted by the engine",
    )


def _costs(run: RunRecord, results: Results) -> list[str]:
    """Return a line for the engine, and one for each of the others that work at the same rate."""
    engine = results.engine
    lines = [_line(run.engine, _cost(engine) if engine else NO_COST)]
    others = {
        name: cost
        for name, cost in results.processes.items()
        if name not in (*SUPPORT, *run.engine_services)
    }
    lines += [_line(name, _cost(cost)) for name, cost in others.items()]
    support = [
        f"{name} {cost.cpu_mean_pct:.1f} % of a core, memory max {_gib(cost.rss_max)}"
        for name, cost in results.processes.items()
        if name in SUPPORT
    ]
    shared = [_line("support", f"shared by all engines: {'; '.join(support)}")] if support else []
    return [*lines, *shared]


def _cost(cost: Cost) -> str:
    parts = [f"CPU {cost.cpu_mean_pct:.1f} % of a core"]
    if cost.cpu_s_per_million is not None:
        parts[0] += f" ({significant(cost.cpu_s_per_million)} CPU-s per million pageviews)"
    if cost.rss_max:
        parts.append(f"memory max {_gib(cost.rss_max)}, {_when(cost.rss_max)}")
    if cost.live_heap_gib is not None:
        parts.append(f"live heap at the end {cost.live_heap_gib:.2f} GiB")
    return "; ".join(parts)


def _gib(most: MemoryMax | None) -> str:
    return f"{most.gib:.2f} GiB" if most else "n/a"


def _when(most: MemoryMax) -> str:
    side = "after" if most.at_s >= 0 else "before"
    return f"{abs(most.at_s):.0f} s {side} the rate was set"


def _view(view: ViewLag) -> str:
    """Return how old a view was, the source of its tracer events, and the verdict on it."""
    return _line(
        "view lag",
        f"{view.name}: median {_ms(view.lag_p50_ms)}, 99 % of the time at most"
        f" {_ms(view.lag_p99_ms)}, max {_ms(view.lag_max_ms)}, by"
        f" {_number(view.tracer_events_per_s, '{:g}')} {view.source} a second; {view.kind}",
    )


def _cdc(way: CdcWay) -> str:
    """Return how old the stages before the engine were."""
    stages = {
        "in the database": way.in_database,
        "sent by CDC": way.sent,
        "in the topic": way.in_topic,
    }
    told = ", ".join(
        f"not {stage} p50 {_ms(of.p50_ms)}, p99 {_ms(of.p99_ms)}" for stage, of in stages.items()
    )
    return _line("inserts", f"{way.inserts_per_s:g}/s; age of the oldest {told}")


def _windows(told: WindowWrites) -> str:
    """What Yahoo's benchmark would publish, and what it does not show."""
    return (
        f"  windows     {told.windows} of {told.length_ms / 1000:g} s: last written p50"
        f" {_ms(told.after_end_p50_ms)}, max {_ms(told.after_end_max_ms)} after the end; lag"
        f" meanwhile up to {_ms(told.lag_max_ms)}"
    )


def _read(answers: Answers) -> str:
    """How long they took and how old they were."""
    told = f"  read        {answers.query}: {answers.answered} of {answers.due} answered"
    if answers.rows_max is not None:
        told += f" with up to {answers.rows_max:,} rows"
    for what, of in (("time", answers.time), ("age", answers.age)):
        if of:
            told += f", {what} p50 {_ms(of.p50_ms)}, p99 {_ms(of.p99_ms)}"
    if answers.errors:
        told += f"; {answers.errors} errors: {(answers.first_error or '')[:SHOWN_OF_AN_ERROR]}"
    return told


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if math.isfinite(value) else "infinite"


def _noise(found: NoiseFigures | None) -> list[str]:
    if not found:
        return []
    speed = ""
    if found.core:
        speed = f"; core speed {found.core.pct:.0f} % of the run's fastest second"
    return [
        _line(
            "noise",
            f"harness {found.harness_cpu_pct:.1f} % of a core, other programs"
            f" {_number(found.foreign_cpu_pct, '{:.1f}')} %; hypervisor took"
            f" {found.steal_pct:.1f} % of the CPU time{speed}",
        )
    ]


def describe_faults(run: RunRecord) -> list[str]:
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
