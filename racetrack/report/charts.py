"""Charts of a report: runs over time, engines over rates and varied settings, and capacity
searches."""

from collections.abc import Callable, Sequence

import numpy as np

from racetrack.analysis import curves as curve_files
from racetrack.analysis import lag, raw
from racetrack.analysis.capacity import scale_of
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.figures import together, window_of
from racetrack.report import scaling
from racetrack.report.chart_data import Chart, Floats, Line, Mark, thinned
from racetrack.report.collect import Collection, Group, Limit, Run, Table
from racetrack.report.figures import BY_KEY
from racetrack.results.folder import shared_file
from racetrack.terminal import Progress, no_progress

FIGURES_BY_RATE = (
    "cpu_mean_pct",
    "rss_max_gib",
    "cpu_s_per_million",
    "lag_p50_ms",
    "view_lag_p99_ms",
    "read_time_p99_ms",
    "read_age_p99_ms",
)
FIGURES_BY_SETTING = ("cpu_mean_pct", "cpu_user_pct", "cpu_system_pct", "rss_max_gib", "lag_p99_ms")
# The axis is logarithmic if the highest value is more than this many times the lowest.
LOG_FROM = 20
# A chart shows a point every GRID_MS, but at most about INSTANTS points: in a run of more than 9 s
# they are further apart. Counts only rise, so no peak lies between two points.
GRID_MS, INSTANTS = 100.0, 90
MARKED_ACTIONS = ("rate", "load", "events", "note")  # faults have marks of their own
CAPACITY = "capacity (95 % interval)"
ROW_SHARE = 0.7  # share of a row's height that the searches of an engine use
CURVES = {
    "due": "due (offered)",
    "handed_over": "handed over",
    "published": "published",
    "processed": "processed",
}


def all_charts(
    collection: Collection, tables: Sequence[Table], progress: Progress = no_progress
) -> tuple[dict[str, list[Chart]], dict[str, list[str]]]:
    """Return all charts by run tag, `table<number>`, `limits<number>` or
    `scale<number>`; and, by run tag, the reasons why charts are missing."""
    charts: dict[str, list[Chart]] = {}
    gaps: dict[str, list[str]] = {}
    for number, table in enumerate(tables, start=1):
        charts[f"table{number}"] = [
            *by_rate(table),
            *by_setting(table, collection.varied),
        ]
    for number, limits in enumerate(collection.limits_by_place.values(), start=1):
        one = limits_chart(limits)
        charts[f"limits{number}"] = [one] if one else []
    for number, each in enumerate(collection.scales, start=1):
        one = scaling.chart(scale_of(each.record))
        charts[f"scale{number}"] = [one] if one else []
    for done, run in enumerate(collection.runs):
        progress(done, len(collection.runs))
        own, gaps[run.tag] = run_charts(run)
        session = replayed_session(run, collection.runs)
        charts[run.tag] = [*(laid_over(session, run) if session else ()), *own]
    return charts, gaps


def by_rate(table: Table) -> list[Chart]:
    """Return a chart over the rate for each figure, with a line for each engine. Return no charts
    if there is only one rate."""
    if len(table.rates) < 2:
        return []
    made = []
    for key in FIGURES_BY_RATE:
        lines = []
        for look, label in enumerate(table.labels):
            points = [(group.rate, group) for group in table.groups if group.label == label]
            lines += _means(label, key, [(float(rate), group) for rate, group in points], look)
        if lines:
            rates = [x for line in lines for x in line.x]
            made.append(_comparison_chart(key, "pageviews/s", lines, rates))
    return made


def by_setting(table: Table, settings: Sequence[str]) -> list[Chart]:
    """Return charts over each setting that a sweep varied, with a line for each engine and rate."""
    made = []
    for setting in settings:
        for key in FIGURES_BY_SETTING:
            lines: list[Line] = []
            for engine, rate in dict.fromkeys((g.runs[0].engine, g.rate) for g in table.groups):
                points = [
                    (value, group)
                    for group in table.groups
                    if (group.runs[0].engine, group.rate) == (engine, rate)
                    and (value := _value(group, setting)) is not None
                ]
                if len(points) > 1:
                    lines += _means(f"{engine} at {rate:,}/s", key, sorted(points), len(lines))
            if lines:
                made.append(_comparison_chart(key, setting, lines, []))
    return made


def limits_chart(limits: Sequence[Limit]) -> Chart | None:
    """Return a chart with a row for each engine, which contains a line of points for each search:
    the capacity, and the highest rate that it sustained within each bound. None if no search
    found a rate."""
    engines = list(dict.fromkeys(each.record.engine for each in limits))
    # name → x, y, half-width of the interval
    points: dict[str, list[tuple[float, float, float]]] = {}
    for row, engine in enumerate(engines):
        searches = [each.record for each in limits if each.record.engine == engine]
        for record, y in zip(searches, _spread_out(row, len(searches)), strict=True):
            if of := record.capacity:
                half = (of.high - of.low) / 2
                points.setdefault(CAPACITY, []).append((of.per_s, y, half))
            for one in record.sustainable:
                if one.sustained_per_s is not None:
                    name = f"sustained within {one.bound_ms / 1000:g} s"
                    points.setdefault(name, []).append((float(one.sustained_per_s), y, np.nan))
    if not points:
        return None
    names = sorted(points, key=lambda name: (name != CAPACITY, name))
    return Chart(
        title="Limits: capacity, and highest rates sustained within each bound",
        x_title="pageviews/s",
        y_title="",
        lines=tuple(_dots(name, points[name], look) for look, name in enumerate(names)),
        x_form="{:,.0f}",
        x_unit="/s",
        y_form="{:,.1f}",
        y_unit="",
        rows=tuple(engines),
        meaning="A row per engine, in it a line per search in the order of the table. A sustained"
        " rate may be above the capacity: rates are tried relative to the capacity of a search’s"
        " first run, and the capacity is that of all runs.",
    )


def _spread_out(row: int, count: int) -> list[float]:
    """Return the vertical positions of `count` lines within a row."""
    return [row + ROW_SHARE * ((line + 0.5) / count - 0.5) for line in range(count)]


def _dots(name: str, points: Sequence[tuple[float, float, float]], look: int) -> Line:
    x, y, half = np.array(points).T
    half = np.where(np.isfinite(half), half, np.nan)
    return Line(name, x, y, look, "dots", half)


def _comparison_chart(key: str, x_title: str, lines: Sequence[Line], rates: list[float]) -> Chart:
    figure = BY_KEY[key]
    return Chart(
        title=f"{figure.title[0].upper()}{figure.title[1:]} against {x_title}",
        x_title=x_title,
        y_title=f"{figure.title}, {figure.unit}",
        lines=tuple(lines),
        x_form="{:,.0f}" if rates else "{:,}",
        x_unit="/s" if rates else "",
        y_form=figure.form or "{:,.2f}",
        y_unit=f" {figure.unit}",
        meaning=f"{figure.means} Means over repeats, bars: 95 % interval.",
        log_y=key == "cpu_s_per_million" and _far_apart([y for line in lines for y in line.y]),
        log_x=_far_apart(rates),
    )


def _far_apart(values: Sequence[float]) -> bool:
    return bool(values) and bool(0 < LOG_FROM * min(values) < max(values))


def _means(label: str, key: str, points: Sequence[tuple[float, Group]], look: int) -> list[Line]:
    known = [(x, mean) for x, group in points if (mean := group.means[key]) is not None]
    if not known:
        return []
    half = [np.nan if mean.half is None else mean.half for _, mean in known]
    x, y = [x for x, _ in known], [mean.mean for _, mean in known]
    return [Line(label, np.array(x), np.array(y), look, "points", np.array(half))]


def _value(group: Group, setting: str) -> float | None:
    try:
        return float(group.runs[0].config.get(setting, ""))
    except ValueError:
        return None


def run_charts(run: Run) -> tuple[list[Chart], list[str]]:
    """Return the charts of a run over time, and the reasons why others are missing."""
    made: list[Chart] = []
    missing: list[str] = []
    if run.record.measured is None:
        return made, ["No charts over time: the run ended before its sampling window."]
    results = run.record.results
    window = window_of(results.verdict) if results else run.record.measured.window
    start_ms, end_ms = float(window.start_ms), float(window.end_ms)
    try:
        curves = curve_files.trusted(curve_files.read(run.path))
        made += [*_lag(run, curves, start_ms, end_ms), _counts(run, curves, start_ms, end_ms)]
    except curve_files.CurvesError as error:
        missing.append(f"No curves and no lag over time: {error}")
    if shared_file(run.path, "usage.csv").is_file():
        made += _usage(run, start_ms, end_ms)
    else:
        missing.append("No CPU and memory over time: usage.csv is missing.")
    return made, missing


def replayed_session(run: Run, runs: Sequence[Run]) -> Run | None:
    """Return the run of the session of which this run is a replay, if it is among `runs`: that of
    the same engine or, if both have one engine, that of the other engine."""
    live = run.record.live
    of_session = [each for each in runs if live and _session_tag(each) == live.replay_of]
    same = [each for each in of_session if each.engine == run.engine]
    alone = of_session if len(of_session) == 1 and run.tag == _session_tag(run) else []
    return next(iter(same or alone), None)


def _session_tag(run: Run) -> str:
    """Return the name of the folder of the whole session."""
    return run.tag.partition("/")[0]


def laid_over(session: Run, replay: Run) -> list[Chart]:
    """Return charts in which a session and its replay are laid over each other, from the beginning
    of their loads. A chart is left out if the raw files of either are missing or damaged."""
    runs = {f"session: {session.engine}": session, f"replay: {replay.engine}": replay}
    try:
        curves = {
            name: curve_files.trusted(curve_files.read(run.path)) for name, run in runs.items()
        }
        lags = [
            _line(
                name,
                *_sawtooth(_ages(of, _load_from_ms(runs[name]))),
                _load_from_ms(runs[name]),
                look,
            )
            for look, (name, of) in enumerate(curves.items())
        ]
    except curve_files.CurvesError:
        lags = []
    cpu = [
        _line(name, *_engine_cpu(run), _load_from_ms(run), look)
        for look, (name, run) in enumerate(runs.items())
        if shared_file(run.path, "usage.csv").is_file()
    ]
    figures = (
        ("Lag", "lag, ms", " ms", lags),
        ("CPU of the engine", "CPU, % of a core", " %", cpu),
    )
    from_ms = _load_from_ms(replay)
    return [
        Chart(
            title=f"{title}, session and replay",
            x_title="seconds since the load began",
            x_form="{:.1f}",
            x_unit=" s",
            y_title=y_title,
            y_form="{:,.0f}",
            y_unit=unit,
            lines=tuple(lines),
            marks=(*_fault_marks(replay, from_ms), *_action_marks(replay, from_ms)),
            meaning=f"The session {session.tag} and its replay, each from the beginning of its"
            " load. The marks are the actions of the replay.",
        )
        for title, y_title, unit, lines in figures
        if len(lines) == len(runs)
    ]


def _load_from_ms(run: Run) -> float:
    return float(run.record.live.from_ms) if run.record.live else 0.0


def _engine_cpu(run: Run) -> tuple[Floats, Floats]:
    """Return the CPU use of all services of the engine."""
    usage = raw.usage(run.path)
    return _cpu(together([usage[name] for name in run.record.engine_services if name in usage]))


def _cpu(readings: Sequence[raw.Reading]) -> tuple[Floats, Floats]:
    """Return times, and the CPU use between a reading and the one before in % of a core."""
    at_ms = np.array([each.at_ms for each in readings], dtype=np.float64)
    used_s = np.array([each.cpu_s for each in readings], dtype=np.float64)
    gaps_ms = np.diff(at_ms)
    kept = gaps_ms > 0
    return at_ms[1:][kept], 100_000 * np.diff(used_s)[kept] / gaps_ms[kept]


def _memory(readings: Sequence[raw.Reading]) -> tuple[Floats, Floats]:
    """Return times, and the resident memory in GiB."""
    at_ms = np.array([each.at_ms for each in readings], dtype=np.float64)
    return at_ms, np.array([each.rss_gib for each in readings], dtype=np.float64)


def _time_chart(run: Run, window: tuple[float, float], **more: object) -> Chart:
    start_ms, end_ms = window
    return Chart(
        x_title="seconds since the judged window began",
        x_form="{:.1f}",
        x_unit=" s",
        band=(0.0, (end_ms - start_ms) / 1000),
        marks=(
            *_fault_marks(run, start_ms),
            *_spike_mark(run, start_ms),
            *_action_marks(run, start_ms),
        ),
        **more,  # type: ignore[arg-type]
    )


def _fault_marks(run: Run, start_ms: float) -> tuple[Mark, ...]:
    """Return the injected faults of a run, each from its start until its services ran again."""
    return tuple(
        Mark(
            done.fault,
            (done.at_ms - start_ms) / 1000,
            None if done.until_ms is None else (done.until_ms - start_ms) / 1000,
        )
        for done in (run.record.faults.done if run.record.faults else ())
    )


def _spike_mark(run: Run, start_ms: float) -> tuple[Mark, ...]:
    """Return the spike of a run's load, if it had one."""
    load = run.record.load
    if not load or load.peak_from_ms is None:
        return ()
    end_ms = load.peak_until_ms
    return (
        Mark(
            load.profile,
            (load.peak_from_ms - start_ms) / 1000,
            None if end_ms is None else (end_ms - start_ms) / 1000,
        ),
    )


def _action_marks(run: Run, start_ms: float) -> tuple[Mark, ...]:
    """Return the actions of a live session, except faults, which have marks of their own."""
    if not run.is_session:
        return ()
    return tuple(
        Mark(action.text, (action.at_ms - start_ms) / 1000, (action.at_ms - start_ms) / 1000)
        for action in raw.actions(run.path)
        if action.name in MARKED_ACTIONS
    )


def _line(
    name: str, at_ms: Floats, y: Floats, start_ms: float, look: int, *, step: bool = False
) -> Line:
    x, kept = thinned((at_ms - start_ms) / 1000, y)
    return Line(name, x, kept, look, "step" if step else "line")


def _counts(run: Run, curves: Curves, start_ms: float, end_ms: float) -> Chart:
    """Return a chart of four counts (due, handed over, stored, processed), summed over the
    partitions and counted from the beginning of the window. Counted from the topic's creation, they
    would be so large that the gaps between the curves would be invisible."""
    until_ms = curve_files.recorded_until_ms(curves)
    if not np.isfinite(until_ms):
        raise curve_files.CurvesError("A clock was set back to before the first row.")
    first_ms = max(parts[0].at_ms[0] for parts in (curves.due, curves.published))
    every_ms = max(GRID_MS, np.ceil((until_ms - first_ms) / INSTANTS / GRID_MS) * GRID_MS)
    at_ms = np.arange(first_ms, until_ms + 1, every_ms)
    origin = _sum(curves.due, np.array([start_ms]))[0]
    lines = []
    for look, (name, title) in enumerate(CURVES.items()):
        count = (_sum(getattr(curves, name), at_ms) - origin) / 1000
        lines.append(_line(title, at_ms, count, start_ms, look, step=name == "processed"))
    return _time_chart(
        run,
        (start_ms, end_ms),
        title="Curves: pageviews, all partitions",
        y_title="thousand pageviews",
        lines=tuple(lines),
        y_form="{:,.1f}",
        y_unit=" k",
        meaning="Cumulative counts: due by the schedule, handed over by the generator, stored in"
        " the broker, counted by the engine. The gap between the first and the last is the"
        " backlog.",
        note=f"Drawn every {every_ms / 1000:g} s.",
    )


def _sum(parts: Sequence[Curve], at_ms: Floats) -> Floats:
    """Return the sum of the curves' counts at these times."""
    counts = [curve_files.counted(curve, at_ms, "right") for curve in parts]
    return np.asarray(np.sum(counts, axis=0), dtype=np.float64)


def _lag_series(curves: Curves, start_ms: float) -> lag.LagSeries:
    begins = [curve.at_ms[0] for curve in curves.processed if len(curve.at_ms)]
    until_ms = curve_files.recorded_until_ms(curves)
    return lag.lag_series(curves, min([start_ms, *begins]), until_ms)


def _ages(curves: Curves, start_ms: float) -> lag.Age:
    series = _lag_series(curves, start_ms)
    return lag.age(curves, series.start_ms, series.end_ms)


def _lag(run: Run, curves: Curves, start_ms: float, end_ms: float) -> list[Chart]:
    """Return two charts: one of the lag, and one of the parts of the processing lag."""
    series = _lag_series(curves, start_ms)
    ages = lag.age(curves, series.start_ms, series.end_ms)
    finite = np.isfinite(series.lag_ms)
    left_out = int(np.count_nonzero(~finite))
    parts: dict[str, Floats] = {
        "processing lag": series.lag_ms,
        "generator's part": series.generator_ms,
        "broker's part": series.broker_ms,
    }
    lines = [
        _line(title, series.at_ms[finite], values[finite], start_ms, look)
        for look, (title, values) in enumerate(parts.items(), start=1)
    ]
    if (run.path / f"{run.engine}_sample_dt.log").is_file():
        updates = raw.delays(run.path, run.engine)
        at = np.array([update.timestamp_ms for update in updates], dtype=np.float64)
        dt = np.array([update.dt_ms for update in updates], dtype=np.float64)
        lines.append(_line("dt_ms (published freshness)", at, dt, start_ms, 4))
    window, form = (start_ms, end_ms), {"y_form": "{:,.0f}", "y_unit": " ms"}
    return [
        _time_chart(
            run,
            window,
            title="Lag",
            y_title="lag, ms",
            lines=(_line("lag", *_sawtooth(ages), start_ms, 0),),
            meaning=f"{BY_KEY['lag_p50_ms'].means.split('. ')[0]}. Lag grows between two updates"
            " and falls at each update.",
            **form,
        ),
        _time_chart(
            run,
            window,
            title="Lag right after each update, and its parts",
            y_title="lag, ms",
            lines=tuple(lines),
            meaning="Processing lag is the lag right after an update. Its parts are those of the"
            " partition with the largest lag. dt_ms is the measure of 2022, in which a lagging"
            " partition can hide.",
            note=f"Left out: {left_out} at pageviews due before the recording began."
            if left_out
            else "",
            **form,
        ),
    ]


def _sawtooth(ages: lag.Age) -> tuple[Floats, Floats]:
    """Return the lag just after each update and just before the next one: times, and lags in
    milliseconds."""
    known = np.isfinite(ages.highest_ms)
    times = np.stack([ages.from_ms[known], ages.until_ms[known]], axis=1).ravel()
    return times, np.stack([ages.lowest_ms[known], ages.highest_ms[known]], axis=1).ravel()


def _usage(run: Run, start_ms: float, end_ms: float) -> list[Chart]:
    usage = raw.usage(run.path)

    def lines(of: Callable[[Sequence[raw.Reading]], tuple[Floats, Floats]]) -> tuple[Line, ...]:
        return tuple(
            _line(service, *of(readings), start_ms, look)
            for look, (service, readings) in enumerate(usage.items())
        )

    window = (start_ms, end_ms)
    return [
        _time_chart(
            run,
            window,
            title="CPU between readings (kernel)",
            y_title="CPU, % of a core",
            lines=lines(_cpu),
            y_form="{:,.0f}",
            y_unit=" %",
            meaning="CPU time in user and kernel mode between two readings, divided by the time"
            " between them; 100 % is one core.",
        ),
        _time_chart(
            run,
            window,
            title="Resident memory (kernel)",
            y_title="memory, GiB",
            lines=lines(_memory),
            y_form="{:,.3f}",
            y_unit=" GiB",
            meaning="Resident memory of all processes of each service.",
        ),
    ]
