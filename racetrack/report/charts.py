"""Charts of a report: variants over loads and settings, and runs over time."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from racetrack.analysis import curves as curve_files
from racetrack.analysis import lag, raw
from racetrack.analysis.claims import Estimate, Key
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.figures import together, window_of
from racetrack.analysis.table import Row
from racetrack.metrics import (
    ACHIEVED,
    AT_RATE,
    CAPACITY,
    CPU,
    CPU_PER_MILLION,
    LAG,
    LAG_P50,
    PROCESSING_LAG_P50,
    RSS,
    Metric,
)
from racetrack.report.chart_data import Chart, Floats, Line, Mark, thinned
from racetrack.report.runs import RunFolder
from racetrack.results.folder import shared_file
from racetrack.results.run import SEARCH, RunRecord, WindowRecord

# The axis is logarithmic if the highest value is more than this many times the lowest.
LOG_FROM = 20
# A chart shows a point every GRID_MS, but at most about INSTANTS points: in a run of more than 9 s
# they are further apart. Counts only rise, so no peak lies between two points.
GRID_MS, INSTANTS = 100.0, 90
MARKED_ACTIONS = ("rate", "load", "events", "note")  # faults have marks of their own
CURVES = {
    "due": "due (offered)",
    "handed_over": "handed over",
    "published": "published",
    "processed": "processed",
}


def comparisons(rows: Sequence[Row], known: Mapping[Key, Estimate]) -> list[Chart]:
    """Return charts of rows of one place: of each figure over the rate, and over each setting in
    which variants of an engine differ."""
    return [*_by_rate(known), *_by_setting(rows, known)]


def _by_rate(known: Mapping[Key, Estimate]) -> Iterator[Chart]:
    """Yield a chart for each figure that was measured at several rates, with a line for each
    variant."""
    for metric in AT_RATE:
        points: dict[str, list[tuple[float, Estimate]]] = {}
        for (variant, key, load), estimate in known.items():
            if key == metric.key and load and load.share is None and not load.profile:
                points.setdefault(variant, []).append((float(load.per_s), estimate))
        lines = [
            _line_of(label, series, look) for look, (label, series) in enumerate(points.items())
        ]
        rates = sorted({x for line in lines for x in line.x})
        if len(rates) > 1:
            yield _comparison(metric, ACHIEVED.unit, lines, rates)


def _by_setting(rows: Sequence[Row], known: Mapping[Key, Estimate]) -> Iterator[Chart]:
    """Yield charts over each setting with numbers as values in which variants differ, with a line
    for each engine and load."""
    for setting, values in _varied(rows).items():
        for metric in (*AT_RATE, CAPACITY):
            points: dict[str, list[tuple[float, Estimate]]] = {}
            for (variant, key, load), estimate in known.items():
                if key == metric.key and variant in values:
                    engine, value = values[variant]
                    label = f"{engine} at {load}" if load else engine
                    points.setdefault(label, []).append((value, estimate))
            several = {label: series for label, series in points.items() if len(series) > 1}
            lines = [
                _line_of(label, series, look)
                for look, (label, series) in enumerate(several.items())
            ]
            if lines:
                yield _comparison(metric, setting, lines, [])


def _varied(rows: Sequence[Row]) -> dict[str, dict[str, tuple[str, float]]]:
    """Return the settings whose values are different numbers for variants of an engine: by setting,
    the engine and the value of each variant."""
    first = {row.variant: row for row in rows}
    values: dict[str, dict[str, tuple[str, float]]] = {}
    for variant, row in first.items():
        for key, text in row.config.items():
            if (value := _number(text)) is not None:
                values.setdefault(key, {})[variant] = (row.engine, value)
    varied = {}
    for key, by_variant in values.items():
        several = Counter(engine for engine, _ in {*by_variant.values()})
        mine = {name: value for name, value in by_variant.items() if several[value[0]] > 1}
        if mine:
            varied[key] = mine
    return varied


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _line_of(label: str, points: Sequence[tuple[float, Estimate]], look: int) -> Line:
    ordered = sorted(points, key=lambda point: point[0])
    x, y, low, high = (
        np.array(values, dtype=float)  # None becomes NaN
        for values in zip(*((x, e.mean, e.low, e.high) for x, e in ordered), strict=True)
    )
    return Line(label, x, y, look, "points", low, high)


def _comparison(metric: Metric, x_title: str, lines: Sequence[Line], rates: list[float]) -> Chart:
    return Chart(
        title=f"{_capital(metric)} against {x_title}",
        x_title=x_title,
        y_title=_axis(metric),
        lines=tuple(lines),
        x_form="{:,.0f}" if rates else "{:,}",
        x_unit="/s" if rates else "",
        y_form=metric.number_form or "{:,.2f}",
        y_unit=f" {metric.unit}",
        meaning=f"{metric.means} Geometric means over repeats, bars: 95 % interval.",
        log_y=metric is CPU_PER_MILLION and _far_apart([y for line in lines for y in line.y]),
        log_x=_far_apart(rates),
    )


def _capital(metric: Metric) -> str:
    return f"{metric.title[0].upper()}{metric.title[1:]}"


def _axis(metric: Metric) -> str:
    return f"{metric.title}, {metric.unit}"


def _far_apart(values: Sequence[float]) -> bool:
    return bool(values) and bool(0 < LOG_FROM * min(values) < max(values))


def run_charts(run: RunFolder) -> tuple[list[Chart], list[str]]:
    """Return the charts of a run over time, and the reasons why others are missing."""
    made: list[Chart] = []
    missing: list[str] = []
    if not (window := _window_of(run.record)):
        return made, ["No charts over time: the run ended before its first window."]
    start_ms, end_ms = window
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


def _window_of(record: RunRecord) -> tuple[float, float] | None:
    """Return start and end of the window of a run, or of its first and last window, epoch
    milliseconds; None if it has none."""
    if record.windows:
        spans = [span for window in record.windows if (span := _span(window))]
        return (min(spans)[0], max(end for _, end in spans)) if spans else None
    if not record.measured:
        return None
    window = window_of(record.results.verdict) if record.results else record.measured.window
    return float(window.start_ms), float(window.end_ms)


def _span(window: WindowRecord) -> tuple[float, float] | None:
    if window.start_ms is None or window.end_ms is None:
        return None
    return float(window.start_ms), float(window.end_ms)


def replayed_session(run: RunFolder, runs: Sequence[RunFolder]) -> RunFolder | None:
    """Return the run of the session of which this run is a replay, if it is among `runs`: that of
    the same engine or, if both have one engine, that of the other engine."""
    live = run.record.live
    of_session = [other for other in runs if live and _session_tag(other) == live.replay_of]
    same = [other for other in of_session if other.engine == run.engine]
    alone = of_session if len(of_session) == 1 and run.tag == _session_tag(run) else []
    return next(iter(same or alone), None)


def _session_tag(run: RunFolder) -> str:
    """Return the name of the folder of the whole session."""
    return run.tag.partition("/")[0]


def laid_over(session: RunFolder, replay: RunFolder) -> list[Chart]:
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
                *_sawtooth(_ages(recorded, _load_from_ms(runs[name]))),
                _load_from_ms(runs[name]),
                look,
            )
            for look, (name, recorded) in enumerate(curves.items())
        ]
    except curve_files.CurvesError:
        lags = []
    cpu = [
        _line(name, *_engine_cpu(run), _load_from_ms(run), look)
        for look, (name, run) in enumerate(runs.items())
        if shared_file(run.path, "usage.csv").is_file()
    ]
    from_ms = _load_from_ms(replay)
    return [
        Chart(
            title=f"{_capital(metric)}, session and replay",
            x_title="seconds since the load began",
            x_form="{:.1f}",
            x_unit=" s",
            y_title=_axis(metric),
            y_form="{:,.0f}",
            y_unit=f" {metric.unit}",
            lines=tuple(lines),
            marks=(*_fault_marks(replay, from_ms), *_action_marks(replay, from_ms)),
            meaning=f"The session {session.tag} and its replay, each from the beginning of its"
            " load. The marks are the actions of the replay.",
        )
        for metric, lines in ((LAG, lags), (CPU, cpu))
        if len(lines) == len(runs)
    ]


def _load_from_ms(run: RunFolder) -> float:
    return float(run.record.live.from_ms) if run.record.live else 0.0


def _engine_cpu(run: RunFolder) -> tuple[Floats, Floats]:
    """Return the CPU use of all services of the engine."""
    usage = raw.usage(run.path)
    return _cpu(together([usage[name] for name in run.record.engine_services if name in usage]))


def _cpu(readings: Sequence[raw.Reading]) -> tuple[Floats, Floats]:
    """Return times, and the CPU use between a reading and the one before in % of a core."""
    at_ms = np.array([reading.at_ms for reading in readings], dtype=np.float64)
    used_s = np.array([reading.cpu_s for reading in readings], dtype=np.float64)
    gaps_ms = np.diff(at_ms)
    kept = gaps_ms > 0
    return at_ms[1:][kept], 100_000 * np.diff(used_s)[kept] / gaps_ms[kept]


def _memory(readings: Sequence[raw.Reading]) -> tuple[Floats, Floats]:
    """Return times, and the resident memory in GiB."""
    at_ms = np.array([reading.at_ms for reading in readings], dtype=np.float64)
    return at_ms, np.array([reading.rss_gib for reading in readings], dtype=np.float64)


def _figure_chart(
    run: RunFolder,
    window: tuple[float, float],
    metric: Metric,
    lines: tuple[Line, ...],
    **more: object,
) -> Chart:
    """Return a chart of a figure over time."""
    shown = {
        "title": _capital(metric),
        "y_title": _axis(metric),
        "y_form": "{:,.0f}",
        "y_unit": f" {metric.unit}",
        "meaning": metric.means,
    }
    return _time_chart(run, window, lines=lines, **(shown | more))


def _time_chart(run: RunFolder, window: tuple[float, float], **more: object) -> Chart:
    start_ms, end_ms = window
    return Chart(
        x_title="seconds since the judged window began",
        x_form="{:.1f}",
        x_unit=" s",
        band=(0.0, (end_ms - start_ms) / 1000),
        marks=(
            *_window_marks(run, start_ms),
            *_fault_marks(run, start_ms),
            *_spike_mark(run, start_ms),
            *_action_marks(run, start_ms),
        ),
        **more,  # type: ignore[arg-type]
    )


def _window_marks(run: RunFolder, start_ms: float) -> tuple[Mark, ...]:
    """Return the windows of a run that has several."""
    return tuple(
        Mark(window.name, (span[0] - start_ms) / 1000, (span[1] - start_ms) / 1000)
        for window in run.record.windows
        if (span := _span(window)) and window.name != SEARCH
    )


def _fault_marks(run: RunFolder, start_ms: float) -> tuple[Mark, ...]:
    """Return the injected faults of a run, each from its start until its services ran again."""
    return tuple(
        Mark(
            done.fault,
            (done.at_ms - start_ms) / 1000,
            None if done.until_ms is None else (done.until_ms - start_ms) / 1000,
        )
        for done in (run.record.faults.done if run.record.faults else ())
    )


def _spike_mark(run: RunFolder, start_ms: float) -> tuple[Mark, ...]:
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


def _action_marks(run: RunFolder, start_ms: float) -> tuple[Mark, ...]:
    """Return the actions of a live session, except faults, which have marks of their own."""
    if not run.record.live:
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


def _counts(run: RunFolder, curves: Curves, start_ms: float, end_ms: float) -> Chart:
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
        title="Curves: events, all partitions",
        y_title="thousand events",
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


def _lag(run: RunFolder, curves: Curves, start_ms: float, end_ms: float) -> list[Chart]:
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
    window = (start_ms, end_ms)
    return [
        _figure_chart(
            run,
            window,
            LAG,
            (_line(LAG.title, *_sawtooth(ages), start_ms, 0),),
            meaning=f"{LAG_P50.means.split('. ')[0]}. Lag grows between two updates"
            " and falls at each update.",
        ),
        _figure_chart(
            run,
            window,
            LAG,
            tuple(lines),
            title="Lag right after each update, and its parts",
            meaning=f"{PROCESSING_LAG_P50.means.split('. ')[0]}. Its parts are those of the"
            " partition with the largest lag. dt_ms is the measure of 2022, in which a lagging"
            " partition can hide.",
            note=f"Left out: {left_out} at events due before the recording began."
            if left_out
            else "",
        ),
    ]


def _sawtooth(ages: lag.Age) -> tuple[Floats, Floats]:
    """Return the lag just after each update and just before the next one: times, and lags in
    milliseconds."""
    known = np.isfinite(ages.highest_ms)
    times = np.stack([ages.from_ms[known], ages.until_ms[known]], axis=1).ravel()
    return times, np.stack([ages.lowest_ms[known], ages.highest_ms[known]], axis=1).ravel()


def _usage(run: RunFolder, start_ms: float, end_ms: float) -> list[Chart]:
    usage = raw.usage(run.path)

    def lines(
        series_of: Callable[[Sequence[raw.Reading]], tuple[Floats, Floats]],
    ) -> tuple[Line, ...]:
        return tuple(
            _line(service, *series_of(readings), start_ms, look)
            for look, (service, readings) in enumerate(usage.items())
        )

    window = (start_ms, end_ms)
    return [
        _figure_chart(run, window, CPU, lines(_cpu)),
        _figure_chart(run, window, RSS, lines(_memory), y_form="{:,.3f}"),
    ]
