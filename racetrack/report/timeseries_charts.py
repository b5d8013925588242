"""The charts of one run over time: curves, lag, CPU and memory, from its raw files."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from racetrack.analysis import curves as curve_files
from racetrack.analysis import lag, raw
from racetrack.analysis.curves import Curve, Curves
from racetrack.analysis.figures import window_of
from racetrack.report.chart import Chart, Floats, Line, Mark, thinned
from racetrack.report.collect import Run
from racetrack.report.definitions import BY_KEY

# Curves are told 10 times a second; where that is more than the eye (and the page) can hold, fewer
# instants are drawn. They only rise, so nothing can hide between two of them.
GRID_MS, INSTANTS = 100.0, 90
CURVES = {
    "due": "due (offered)",
    "handed_over": "handed over",
    "published": "published",
    "processed": "processed",
}


def charts(run: Run) -> tuple[list[Chart], list[str]]:
    """The charts that the folder's files allow, and what is missing and why."""
    made: list[Chart] = []
    missing: list[str] = []
    if run.record.measured is None:
        return made, ["No charts over time: the run never came to its sampling window."]
    results = run.record.results
    window = window_of(results.verdict) if results else run.record.measured.window
    start_ms, end_ms = float(window.start_ms), float(window.end_ms)
    try:
        told = curve_files.trusted(curve_files.read(run.path))
        made += [_counts(run, told, start_ms, end_ms), _lag(run, told, start_ms, end_ms)]
    except curve_files.CurvesError as error:
        missing.append(f"No curves and no lag over time: {error}")
    if (run.path / "usage.csv").is_file():
        made += _usage(run, start_ms, end_ms)
    else:
        missing.append("No CPU and memory over time: usage.csv is missing.")
    return made, missing


def _chart(run: Run, kind: str, window: tuple[float, float], **more: object) -> Chart:
    start_ms, end_ms = window
    return Chart(
        name=f"{run.tag}_{kind}",
        x_title="seconds since the judged window began",
        x_form="{:.1f}",
        x_unit=" s",
        band=(0.0, (end_ms - start_ms) / 1000),
        marks=_marks(run, start_ms),
        **more,  # type: ignore[arg-type]
    )


def _marks(run: Run, start_ms: float) -> tuple[Mark, ...]:
    """The faults of a run, from when each began until what it hit was back."""
    return tuple(
        Mark(
            done.fault,
            (done.at_ms - start_ms) / 1000,
            None if done.until_ms is None else (done.until_ms - start_ms) / 1000,
        )
        for done in (run.record.faults.done if run.record.faults else ())
    )


def _line(
    name: str, at_ms: Floats, y: Floats, start_ms: float, look: int, *, step: bool = False
) -> Line:
    x, kept = thinned((at_ms - start_ms) / 1000, y)
    return Line(name, x, kept, look, "step" if step else "line")


def _counts(run: Run, told: Curves, start_ms: float, end_ms: float) -> Chart:
    """All partitions together, above what stood when the window began: else the curves of a rate
    could not be told from one another."""
    until_ms = curve_files.recorded_until_ms(told)
    first_ms = max(parts[0].at_ms[0] for parts in (told.due, told.published))
    every_ms = max(GRID_MS, np.ceil((until_ms - first_ms) / INSTANTS / GRID_MS) * GRID_MS)
    at_ms = np.arange(first_ms, until_ms + 1, every_ms)
    origin = _sum(told.due, np.array([start_ms]))[0]
    lines = []
    for look, (name, title) in enumerate(CURVES.items()):
        count = (_sum(getattr(told, name), at_ms) - origin) / 1000
        lines.append(_line(title, at_ms, count, start_ms, look, step=name == "processed"))
    return _chart(
        run,
        "curves",
        (start_ms, end_ms),
        title="Curves: pageviews, all partitions",
        y_title="thousand since the window began",
        lines=tuple(lines),
        y_form="{:,.1f}",
        y_unit=" k",
        meaning="Cumulative: due by the schedule, handed over by the generator, in the broker,"
        " counted by the engine. The engine's is the gap between the first and the last.",
        note=f"Drawn every {every_ms / 1000:g} s.",
    )


def _sum(parts: Sequence[Curve], at_ms: Floats) -> Floats:
    """The last known counts, added up; 0 before a curve begins."""

    def known(curve: Curve) -> Floats:
        rows = np.searchsorted(curve.at_ms, at_ms, "right")
        return np.concatenate([[0.0], curve.count])[rows]

    return np.asarray(np.sum([known(curve) for curve in parts], axis=0), dtype=np.float64)


def _lag(run: Run, told: Curves, start_ms: float, end_ms: float) -> Chart:
    begins = [curve.at_ms[0] for curve in told.processed if len(curve.at_ms)]
    series = lag.lag_series(told, min([start_ms, *begins]), curve_files.recorded_until_ms(told))
    finite = np.isfinite(series.lag_ms)
    at_ms = series.at_ms[finite]
    parts: dict[str, Floats] = {
        "processing lag (right after an update)": series.lag_ms,
        "generator's part": series.generator_ms,
        "broker's part": series.broker_ms,
    }
    lines = [
        _line("lag", *_sawtooth(lag.age(told, series.start_ms, series.end_ms)), start_ms, 0),
        *(
            _line(title, at_ms, values[finite], start_ms, look)
            for look, (title, values) in enumerate(parts.items(), start=1)
        ),
    ]
    if (run.path / f"{run.engine}_sample_dt.log").is_file():
        updates = raw.delays(run.path, run.engine)
        at = np.array([update.timestamp_ms for update in updates], dtype=np.float64)
        dt = np.array([update.dt_ms for update in updates], dtype=np.float64)
        lines.append(_line("dt_ms (published freshness)", at, dt, start_ms, 4))
    left_out = int(np.count_nonzero(~finite))
    return _chart(
        run,
        "lag",
        (start_ms, end_ms),
        title="Lag",
        y_title="ms",
        lines=tuple(lines),
        y_form="{:,.0f}",
        y_unit=" ms",
        meaning=f"{BY_KEY['lag_p50_ms'].means.split('. ')[0]}. It grows between two updates, and"
        " falls at each to the processing lag, whose parts are those of the partition that decides;"
        " dt_ms is the published measure, in which a lagging partition can hide.",
        note=f"Left out: {left_out} at pageviews due before the recording began."
        if left_out
        else "",
    )


def _sawtooth(told: lag.Age) -> tuple[Floats, Floats]:
    """The lag just after each update and just before the next: times, and milliseconds."""
    known = np.isfinite(told.highest_ms)
    times = np.stack([told.from_ms[known], told.until_ms[known]], axis=1).ravel()
    return times, np.stack([told.lowest_ms[known], told.highest_ms[known]], axis=1).ravel()


def _usage(run: Run, start_ms: float, end_ms: float) -> list[Chart]:
    usage = raw.usage(run.path)

    def lines(of: Callable[[list[raw.Reading]], tuple[list[float], list[float]]]) -> list[Line]:
        found = []
        for look, (service, readings) in enumerate(usage.items()):
            at_ms, values = of(readings)
            found.append(_line(service, np.array(at_ms), np.array(values), start_ms, look))
        return found

    def cpu(readings: list[raw.Reading]) -> tuple[list[float], list[float]]:
        pairs = [(a, b) for a, b in pairwise(readings) if b.at_ms > a.at_ms]
        used = [100_000 * (b.cpu_s - a.cpu_s) / (b.at_ms - a.at_ms) for a, b in pairs]
        return [float(b.at_ms) for _, b in pairs], used

    def memory(readings: list[raw.Reading]) -> tuple[list[float], list[float]]:
        return [float(r.at_ms) for r in readings], [r.rss_gib for r in readings]

    window = (start_ms, end_ms)
    return [
        _chart(
            run,
            "cpu",
            window,
            title="CPU between readings (kernel)",
            y_title="% of a core",
            lines=tuple(lines(cpu)),
            y_form="{:,.0f}",
            y_unit=" %",
            meaning="CPU time in user and system mode between two readings, over their distance;"
            " 100 % is one core.",
        ),
        _chart(
            run,
            "memory",
            window,
            title="Resident memory (kernel)",
            y_title="GiB",
            lines=tuple(lines(memory)),
            y_form="{:,.3f}",
            y_unit=" GiB",
            meaning="Resident memory of all processes of each service.",
        ),
    ]
