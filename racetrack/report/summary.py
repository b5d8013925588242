"""Texts of the summary that a run prints at its end, and of the result of a verification."""

import math
from collections.abc import Mapping
from pathlib import Path

from racetrack.analysis import windows
from racetrack.analysis.warnings import NO_COST, caveats_of, measurement_warnings
from racetrack.analysis.windows import SUPPORT
from racetrack.metrics import (
    COUNTED_TWICE,
    CPU_MEAN,
    CPU_PER_MILLION,
    FOREIGN_CPU,
    HARNESS_CPU,
    LAG_MAX,
    LAG_P50,
    LAG_P99,
    LIVE_HEAP,
    METRICS,
    RSS_MAX,
    Metric,
)
from racetrack.results.base import Scalar
from racetrack.results.figures import (
    Answers,
    CdcLag,
    Cost,
    Freshness,
    Lag,
    LagOverTime,
    LoadEffect,
    MemoryMax,
    NoiseFigures,
    Recovery,
    Results,
    StartLag,
    ViewLag,
    WindowWrites,
)
from racetrack.results.folder import shown
from racetrack.results.run import DoneFault, RunArguments, RunRecord, is_throttled, is_void
from racetrack.results.verification import (
    CdcVerified,
    Miscounted,
    Row,
    UnfitMessages,
    Verified,
    ViewFinding,
    ViewStatus,
)
from racetrack.workloads.contract import run_label, work_of

SHOWN_OF_AN_ERROR = 120
MORE = "more than"
LAG_LINE = "lag"
NEXT = (
    "Stop other programs (`top` shows them) and run it again. On a machine that is always shared,"
    " set NOISE_GATE=false to accept such runs."
)
SHOWN_ROWS = 3
SHOWN_CHARACTERS = 100


def describe_run(run: RunRecord, folder: Path) -> list[str]:
    """Return the summary of a run with results, as lines."""
    results, arguments = run.results, run.arguments
    if not (results and arguments):
        return []
    on = run_label(run.runtime, work_of(run.settings))
    shape = f" on average, {arguments.load}" if arguments.load else ""
    engine = " beside ".join((run.engine, *run.beside))
    lines = [
        f"{engine} at {arguments.events_per_s:,} events/s{shape} ({on}): {run.outcome}",
        _line("verdict", results.verdict.reason),
        *([_lag(run, lag)] if (lag := results.verdict.measured) else []),
        *map(_view, results.views),
        *([_start(results.start)] if results.start else []),
        *([_cdc(results.cdc)] if results.cdc else []),
        *map(_read, results.reads),
        *([_windows(results.window_writes)] if results.window_writes else []),
        *describe_load(run),
        *describe_faults(run),
        _delay(results.dt_ms),
        _rate(arguments, results),
        *_costs(run, results),
        *_noise(results.noise),
        *(_line("warning", warning) for warning in measurement_warnings(run)),
        *([_line("next", NEXT)] if is_void(run.outcome) and not is_throttled(run.outcome) else []),
        *(_line("caveat", caveat) for caveat in caveats_of(run)),
        *(describe_verification(run.verified) if run.verified else []),
    ]
    return [*lines, _line("logs", shown(folder))]


def _line(name: str, text: str) -> str:
    return f"  {name:<11} {text}"


def _lag(run: RunRecord, lag: Lag) -> str:
    """Return the line of the lag: all figures that the registry lists there."""
    figures = windows.values(run)
    listed = [
        metric for key, metric in METRICS.items() if metric.line == LAG_LINE and key in figures
    ]
    return _line(LAG_LINE, _over_time(lag, {metric: figures[metric.key] for metric in listed}))


def _over_time(lag: LagOverTime, figures: Mapping[Metric, float]) -> str:
    """Format figures of a lag, without its name in their titles."""
    return ", ".join(
        f"{metric.title.removeprefix(LAG_LINE).lstrip()}"
        f" {_lag_ms(ms, lag.more_than_ms.get(metric.key))}"
        for metric, ms in figures.items()
    )


def _lag_ms(value: float, more_than_ms: float | None) -> str:
    """Format a lag; if its beginning was not recorded, as the part that was."""
    if math.isfinite(value):
        return _ms(value)
    return f"{MORE} {'was recorded' if more_than_ms is None else _ms(more_than_ms)}"


def _start(start: StartLag) -> str:
    """Return a line with the lag before the judged window."""
    largest = _lag_ms(start.lag_max_ms, start.more_than_ms)
    return _line(
        "start",
        f"not judged: in the first {start.seconds:.1f} s at this rate, the lag of"
        f" {start.view or 'the count'} was up to {largest}",
    )


def _delay(dt: Freshness) -> str:
    if not dt.updates:
        return _line("delay", "dt_ms n/a: no update in the judged window")
    if dt.p50 is None:
        return _line("delay", "dt_ms n/a: a received_at was ahead of the clock")
    return _line(
        "delay",
        f"dt_ms median {_number(dt.p50, '{:,.0f}')}, mean {_number(dt.mean, '{:,.0f}')},"
        f" max {_number(dt.max, '{:,.0f}')} over {dt.updates} update{'s' * (dt.updates != 1)}",
    )


def _rate(arguments: RunArguments, results: Results) -> str:
    achieved = _number(results.achieved_events_per_s, "{:,.0f}")
    offered = f"{achieved} of {arguments.events_per_s:,} events/s"
    if arguments.load:
        due = _number(results.offered_events_per_s, "{:,.0f}")
        offered = f"{achieved} of the {due} events/s due in the window"
    if not arguments.events_per_s:
        offered = f"{achieved} events/s, which purchases bring"
    return _line(
        "rate",
        f"{offered}; in the whole run"
        f" {results.published_events:,} published,"
        f" {_number(results.processed_events, '{:,}')} counted by the engine",
    )


def _costs(run: RunRecord, results: Results) -> list[str]:
    """Return lines on cost: one for the engine, one for each other service whose cost depends on
    the rate, and one for the services shared by all engines."""
    engine = results.engine
    lines = [_line(run.engine, _cost(engine) if engine else NO_COST)]
    others = {
        name: cost
        for name, cost in results.processes.items()
        if name not in (*SUPPORT, *run.engine_services)
    }
    lines += [_line(name, _cost(cost)) for name, cost in others.items()]
    support = [
        f"{name} {CPU_MEAN.text(cost.cpu_mean_pct)}, {_memory(cost.rss_max)}"
        for name, cost in results.processes.items()
        if name in SUPPORT
    ]
    shared = [_line("support", f"shared by all engines: {'; '.join(support)}")] if support else []
    return [*lines, *shared]


def _cost(cost: Cost) -> str:
    parts = [f"CPU {CPU_MEAN.text(cost.cpu_mean_pct)}"]
    if cost.cpu_s_per_million is not None:
        parts[0] += f" ({CPU_PER_MILLION.text(cost.cpu_s_per_million)} events)"
    if cost.rss_max:
        parts.append(f"{_memory(cost.rss_max)}, {_when(cost.rss_max)}")
    if cost.live_heap_gib is not None:
        parts.append(f"{LIVE_HEAP.title} at the end {LIVE_HEAP.text(cost.live_heap_gib)}")
    if cost.throttled_pct is not None:
        parts.append(f"at its CPU limit in {cost.throttled_pct:.1f} % of periods")
    return "; ".join(parts)


def _memory(most: MemoryMax | None) -> str:
    return f"{RSS_MAX.title} {RSS_MAX.text(most.gib if most else None)}"


def _when(most: MemoryMax) -> str:
    side = "after" if most.at_s >= 0 else "before"
    return f"{abs(most.at_s):.0f} s {side} the rate was set"


def _view(view: ViewLag) -> str:
    """Return a line with the lag of a view, the source of its tracer events, and its verdict."""
    figures = {metric: getattr(view, metric.key) for metric in (LAG_P50, LAG_P99, LAG_MAX)}
    error = f" ({view.error_ms:.0f} ms apart)" if view.error_ms else ""
    return _line(
        "view lag",
        f"{view.name}: {_over_time(view, figures)}, by"
        f" {_number(view.tracer_events_per_s, '{:g}')} {view.source} a second{error}; {view.kind}",
    )


def _cdc(lag: CdcLag) -> str:
    """Return a line with the age of the oldest insert that is missing at each stage before the
    engine."""
    stages = {
        "in the database": lag.in_database,
        "sent by CDC": lag.sent,
        "in the topic": lag.in_topic,
    }
    ages = ", ".join(
        f"not {stage} p50 {_ms(lag.p50_ms)}, p99 {_ms(lag.p99_ms)}" for stage, lag in stages.items()
    )
    return _line("inserts", f"{lag.inserts_per_s:g}/s; age of the oldest {ages}")


def _windows(writes: WindowWrites) -> str:
    """Return a line with the latency as defined by Yahoo's benchmark, and with the maximum lag,
    which that latency does not show."""
    return _line(
        "windows",
        f"{writes.windows} of {writes.length_ms / 1000:g} s: last written p50"
        f" {_ms(writes.after_end_p50_ms)}, max {_ms(writes.after_end_max_ms)} after the end; lag"
        f" in this time up to {_lag_ms(writes.lag_max_ms, writes.more_than_ms)}",
    )


def _read(answers: Answers) -> str:
    """Return a line with the response time and the age of the answers to a query."""
    text = f"{answers.query}: {answers.answered} of {answers.due} answered"
    if answers.rows_max is not None:
        text += f" with up to {answers.rows_max:,} rows"
    for what, quantiles in (("time", answers.time), ("age", answers.age)):
        if quantiles:
            text += f", {what} p50 {_ms(quantiles.p50_ms)}, p99 {_ms(quantiles.p99_ms)}"
    if answers.errors:
        text += f"; {answers.errors} errors: {(answers.first_error or '')[:SHOWN_OF_AN_ERROR]}"
    return _line("read", text)


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if math.isfinite(value) else "infinite"


def _noise(noise: NoiseFigures | None) -> list[str]:
    if not noise:
        return []
    speed = ""
    if noise.core:
        speed = f"; core speed {noise.core.pct:.0f} % of the run's fastest second"
    stopped = ""
    if noise.throttled_pct:
        stopped = f"; CPU quota stopped processes {noise.throttled_pct:.1f} % of a core's time"
    return [
        _line(
            "noise",
            f"harness {HARNESS_CPU.text(noise.harness_cpu_pct)}, other programs"
            f" {FOREIGN_CPU.text(noise.foreign_cpu_pct)}; hypervisor took"
            f" {noise.steal_pct:.1f} % of the CPU time{speed}{stopped}",
        )
    ]


def describe_load(run: RunRecord) -> list[str]:
    """Return lines on the load profile, the engine's largest backlog, and its recovery from a
    spike."""
    if not (run.load and run.results and (effect := run.results.load)):
        return []
    lines = [
        _line(
            "load",
            f"{run.load.profile}: not a steady state, so the verdict is on the sampling window as"
            " it is",
        )
    ]
    text = f"at most {effect.max_backlog_events:,} events"
    if effect.recovery:
        text += f" ({_number(effect.max_backlog_before_events, '{:,}')} before the spike)"
        lines.append(_line("recovery", f"lag {_after_peak(effect, effect.recovery)}"))
    return [*lines, _line("backlog", text)]


def _after_peak(effect: LoadEffect, recovery: Recovery) -> str:
    if not recovery.after_s:
        return _back(recovery)
    when = f"{effect.after_peak_s:.1f} s after" if effect.after_peak_s else "during"
    return f"normal again {when} the spike ({_worst(recovery)})"


def describe_faults(run: RunRecord) -> list[str]:
    """Return a line for each injected fault, with the time to restart and the recovery of the
    lag."""
    if not (run.faults and run.results):
        return []
    lines = []
    for done, came_back in zip(run.faults.done, run.results.faults, strict=False):
        lags = [f"lag of {name} {_back(lag)}" for name, lag in came_back.lags.items()]
        lines.append(_line("fault", f"{done.fault}: {', '.join([*_took(done), *lags])}"))
    return lines


def _took(done: DoneFault) -> list[str]:
    took = (("up again in", done.restart_s), ("demo loaded again in", done.reload_s))
    return [f"{what} {seconds:.1f} s" for what, seconds in took if seconds]


def _back(recovery: Recovery) -> str:
    if recovery.after_s is None:
        return "never normal again while the run was watched"
    if recovery.after_s == 0:
        return f"never above normal ({_worst(recovery)})"
    return f"normal again after {recovery.after_s:.1f} s ({_worst(recovery)})"


def _worst(recovery: Recovery) -> str:
    if recovery.worst_ms is None or not math.isfinite(recovery.worst_ms):
        return "maximum not known"
    return f"at most {recovery.worst_ms:,.0f} ms"


def _number(value: float | None, form: str) -> str:
    return "n/a" if value is None or not math.isfinite(value) else form.format(value)


def describe_verification(verified: Verified) -> list[str]:
    """Return the result of a verification as lines: the number of right views, the first wrong rows
    of each wrong view, and the time to drain."""
    lines = [*_describe_cdc_tables(verified), _line("views", describe_views(verified))]
    for name in verified.named(ViewStatus.WRONG, ViewStatus.UNREADABLE):
        lines += _describe_wrong("WRONG", name, verified.views[name], ("source", "engine"))
    for name in verified.named(ViewStatus.NOT_COMPARED):
        lines.append(f"  NOT COMPARED {name}: {verified.views[name].reason}")
    for topic, unfit in verified.unfit.items():
        lines.append(_line("UNFIT", describe_unfit(topic, unfit)))
    for table in verified.first_rows_of:
        lines.append(_line("", f"by the first rows of {table}: this engine ignores their updates"))
    if absent := verified.named(ViewStatus.ABSENT):
        lines.append(_line("", f"not in this engine's demo: {', '.join(absent)}"))
    return [*lines, _line("drained", describe_drain(verified))]


def _describe_cdc_tables(verified: Verified) -> list[str]:
    """Return lines on the comparison of CDC topics with MySQL, with the first different rows of
    each table."""
    if not (cdc := verified.cdc):
        return []
    lines = [_line("CDC", describe_cdc(cdc))]
    for name in cdc.differing:
        lines += _describe_wrong("DIFFERS", name, cdc.tables[name], ("MySQL", "topic"))
    return [*lines, *(_line("", f"sent no message: {statement}") for statement in cdc.statements)]


def _describe_wrong(
    heading: str, name: str, finding: ViewFinding, sides: tuple[str, str]
) -> list[str]:
    """Return lines on a wrong view or topic: what is wrong, then the first wrong rows. Each row is
    shown as it is on each of the two sides, whose names are `sides` (such as source and engine)."""
    lines = [_line(heading, f"{name}: {describe_wrong_view(finding)}")]
    for row in finding.first[:SHOWN_ROWS]:
        lines += [
            _line("", f"{row.finding:<9} {sides[0]:<7} {_format_row(row.source)}"),
            _line("", f"{'':<9} {sides[1]:<7} {_format_row(row.engine)}"),
        ]
    return lines


def describe_cdc(cdc: CdcVerified) -> str:
    """Return a text such as `3 of 3 topics equal MySQL: 12,187 rows`, with the number of different
    rows if there are any."""
    tables = cdc.tables
    equal = [name for name, finding in tables.items() if finding.status is ViewStatus.RIGHT]
    rows = sum(finding.compared for finding in tables.values())
    text = f"{len(equal)} of {len(tables)} topics equal MySQL: {rows:,} rows"
    if cdc.differing:
        text += f"; CDC delivered {cdc.differing_rows:,} rows that differ"
    for name, finding in tables.items():
        if finding.status is ViewStatus.NOT_COMPARED:
            text += f"; {name} not compared: {finding.reason}"
    return text


def describe_unfit(topic: str, unfit: UnfitMessages) -> str:
    """Return a text with the number of invalid messages in a topic, and descriptions of the first
    few."""
    more = unfit.count - len(unfit.first)
    others = f"; and {more:,} more" if more else ""
    return f"{unfit.count:,} in {topic}, left out: {'; '.join(unfit.first)}{others}"


def describe_views(verified: Verified) -> str:
    """Return a text such as `15 of 17 right: …`, or `11 of 12 right (12 of 17 views): …` if the
    engine's demo does not create all views."""
    views, sources = verified.views, verified.source_rows
    there = len(views) - len(verified.named(ViewStatus.ABSENT))
    compared = sum(view.compared for view in views.values())
    not_all = f" ({there} of {len(views)} views)" if there < len(views) else ""
    return (
        f"{len(verified.named(ViewStatus.RIGHT))} of {there} right{not_all}: {compared:,} rows"
        " compared with"
        f" {sum(sources.values()):,} of {len(sources)} sources in {verified.took_s:,.1f} s"
    )


def describe_wrong_view(view: ViewFinding) -> str:
    """Return a text on what is wrong with a view; empty if the view is right."""
    if view.status in (ViewStatus.UNREADABLE, ViewStatus.NOT_COMPARED):
        return f"{view.status}: {view.reason}"
    if view.status is not ViewStatus.WRONG:
        return ""
    counts = ((view.missing, "missing"), (view.extra, "extra"), (view.different, "different"))
    rows = ", ".join(f"{count:,} {kind}" for count, kind in counts if count)
    return f"{rows}; {_describe_miscounted(view.miscounted)}" if view.miscounted else rows


def _describe_miscounted(miscounted: Miscounted) -> str:
    """Return a text such as `90 of 26,486 events counted twice`."""
    lost = "not counted yet" if miscounted.still_counting else "lost"
    kinds = ((miscounted.twice, COUNTED_TWICE.title), (miscounted.lost, lost))
    (count, kind), *more = ((count, kind) for count, kind in kinds if count)
    others = "".join(f", {count:,} {kind}" for count, kind in more)
    return f"{count:,} of {miscounted.events:,} events {kind}{others}"


def describe_drain(verified: Verified) -> str:
    """Return a text with the time from the pause of the load until the engine had processed all
    input."""
    after_s = verified.drained_after_s
    if after_s is None:
        return f"not within {verified.drain_within_s:.0f} s of the pause"
    return f"{after_s:,.1f} s after the pause"


def printable(value: Scalar) -> Scalar:
    """Return a value for printing. In text, escape control characters, and truncate long text."""
    if not isinstance(value, str):
        return value
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _format_row(row: Row | None) -> str:
    if not row:
        return "no such row"
    return ", ".join(f"{name}={printable(value)}" for name, value in row.items())
