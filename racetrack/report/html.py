"""The report as a self-contained HTML page."""

import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from racetrack import __version__
from racetrack.analysis.compare import CONFIDENCE
from racetrack.analysis.scaling import scale_of
from racetrack.report import scaling, searches, summary
from racetrack.report.charts import Plot
from racetrack.report.collect import Collection, Run, Table, changed_settings
from racetrack.report.draw import Floats, Line, for_page
from racetrack.report.figures import BY_KEY, COMPARED, FIGURES, SHOWN, Grade, number
from racetrack.report.tables import (
    describe_answer,
    describe_costs,
    describe_means,
    format_mean,
    format_ratio,
    graded_warnings,
)
from racetrack.results.figures import Answers, Quantiles, ViewLag
from racetrack.results.scale import ScaleRecord
from racetrack.results.verification import Verified, WrongRow

MOST_STEPS = 5  # between two ticks of an axis
SIGNS = {
    "kept up": "✓",
    "fell behind": "✗",
    "undecided": "?",
    "generator-bound": "⊘",
    "broker-bound": "⊘",
    "failed": "!",
    "right": "✓",
    "wrong": "✗",
    "unreadable": "!",
}


def page(
    collection: Collection,
    tables: Sequence[Table],
    plots: Mapping[str, Sequence[Plot]],
    gaps: Mapping[str, Sequence[str]],
    created_at: str,
) -> str:
    """Return the page. `plots` and `gaps` are the results of `charts.plots`."""
    template = environment().get_template("report.html.j2")
    return template.render(
        title=_title(collection),
        css=own_file("uplot/uPlot.min.css") + own_file("page.css"),
        licence=own_file("uplot/LICENSE"),
        scripts=[own_file(f"{name}.js") for name in ("uplot/uPlot.iife.min", "charts", "page")],
        created_at=created_at,
        version=__version__,
        confidence=f"{CONFIDENCE:.0%}",
        run_count=len(collection.runs),
        tables=[
            _table(table, plots.get(f"table{i}", ())) for i, table in enumerate(tables, start=1)
        ],
        limits=collection.limits,
        limits_by_place=[
            {
                "place": place,
                "found": found,
                "answer": searches.describe_ranking(found),
                "dots": next(map(_dots, plots.get(f"limits{number}", ())), None),
                "bounds": searches.bounds_of(found),
                "agreement": searches.describe_agreement(limit.record for limit in found),
            }
            for number, (place, found) in enumerate(collection.limits_by_place.items(), start=1)
        ],
        scales=[
            _scale(scale.record, plots.get(f"scale{number}", ()))
            for number, scale in enumerate(collection.scales, start=1)
        ],
        missing=[*collection.missing, *collection.left_out],
        runs=[_run(run, plots.get(run.tag, ()), gaps.get(run.tag, ())) for run in collection.runs],
        shown=SHOWN,
        compared=COMPARED,
        figures=BY_KEY,
        all_figures=FIGURES,
    )


def environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("racetrack.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    # Omit spaces, since charts have tens of thousands of points.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters.update(
        slug=lambda kind: str(kind).replace(" ", "-"),
        sign=lambda kind: SIGNS.get(kind, "·"),
        spread=format_mean,
        number=number,
        rate=lambda rate: "n/a" if rate is None else f"{rate:,}",
        minutes=lambda minutes: f"{minutes:.0f} min",
        capacity=searches.describe_capacity,
        sustained=searches.describe_sustained,
        saturation=searches.describe_saturation,
        trial=searches.describe_trial,
    )
    return environment


def own_file(name: str) -> Markup:
    """Return a style sheet or script of this package without escaping, which is safe since it
    contains no text from run folders."""
    return Markup(files("racetrack.report.page").joinpath(name).read_text("utf-8"))  # noqa: S704


def _title(collection: Collection) -> str:
    engines = dict.fromkeys(
        [
            *(run.engine for run in collection.runs),
            *(limit.record.engine for limit in collection.limits),
            *(scale.record.engine for scale in collection.scales),
        ]
    )
    return f"Racetrack: {', '.join(engines)}"


def _table(table: Table, plots: Sequence[Plot]) -> dict[str, Any]:
    counted = [run for group in table.groups for run in group.runs]
    return {
        "runtime": table.runtime,
        "machine": table.machine,
        "single": _run(counted[0], (), ()) if len(counted) == 1 else None,
        "groups": table.groups,
        "answer": describe_answer(table),
        "warnings": _warnings(table),
        "how": describe_means(table),
        "costs": describe_costs(table),
        "differences": table.differences,
        "comparisons": _comparisons(table),
        "charts": [_chart(plot) for plot in plots],
        "failed": [(run.tag, run.why_not) for run in table.failed],
    }


def _scale(record: ScaleRecord, plots: Sequence[Plot]) -> dict[str, Any]:
    scale = scale_of(record)
    heading, *rows = scaling.table(scale)
    return {
        "place": scaling.place(record),
        "answer": scaling.sentences(scale),
        "charts": [_chart(plot) for plot in plots],
        "heading": heading,
        "rows": rows,
        "conditions": scaling.describe_conditions(record),
    }


def _warnings(table: Table) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the severities with their warnings. Severities without warnings are left out."""
    graded = graded_warnings(table)
    graded[Grade.DOUBTFUL] = [*((of, "") for of in table.warnings), *graded[Grade.DOUBTFUL]]
    return [(str(grade), of) for grade, of in graded.items() if of]


def _comparisons(table: Table) -> list[dict[str, Any]]:
    """Return a row for each rate and pair of engines, with a cell for each figure."""
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for one in table.comparisons:
        pair = f"{one.of} / {one.to}"
        row = rows.setdefault((one.rate, pair), {"rate": one.rate, "pair": pair, "cells": {}})
        row["cells"][one.key] = format_ratio(one)
    return list(rows.values())


def _run(run: Run, plots: Sequence[Plot], gaps: Sequence[str]) -> dict[str, Any]:
    record, results = run.record, run.record.results
    facts: dict[str, Mapping[str, Any]] = {
        "Arguments": record.arguments.model_dump(exclude_unset=True) if record.arguments else {},
        "Versions": record.versions,
        "Machine": record.machine.model_dump(exclude_unset=True),
        "Changed settings": changed_settings(record),
        "Counted": {
            "published_pageviews": results.published_pageviews,
            "processed_pageviews": results.processed_pageviews,
        }
        if results
        else {},
    }
    return {
        "tag": run.tag,
        "engine": run.engine,
        "rate": run.rate,
        "verdict": run.verdict,
        "counts": run.counts,
        "why_not": run.why_not,
        "reason": results.verdict.reason if results else "",
        "warnings": [(str(grade), of) for grade, of in run.graded.items() if of],
        "gaps": gaps,
        "figures": run.figures,
        "charts": [_chart(plot) for plot in plots],
        "facts": [(name, list(pairs.items())) for name, pairs in facts.items() if pairs],
        "views": [_view(view) for view in results.views] if results else [],
        "reads": [_read(answers) for answers in results.reads] if results else [],
        "verified": _verified(record.verified) if record.verified else None,
    }


def _view(view: ViewLag) -> dict[str, Any]:
    """Return the values of a traced view for the template. Infinite lags become None."""
    shown = view.model_dump()
    for name in ("lag_p50_ms", "lag_p99_ms", "lag_max_ms"):
        shown[name] = shown[name] if math.isfinite(shown[name]) else None
    return {**shown, "kind": str(view.kind)}


def _read(answers: Answers) -> dict[str, Any]:
    """Return the values of a query's answers for the template. Infinite times and ages become
    None."""
    shown = answers.model_dump()
    for name in ("time", "age"):
        of = shown[name] or dict.fromkeys(Quantiles.model_fields, math.inf)
        shown[name] = {key: ms if math.isfinite(ms) else None for key, ms in of.items()}
    return shown


def _verified(found: Verified) -> dict[str, Any]:
    """Return the result of a verification for the template: CDC topics compared with MySQL, and
    views compared with their sources, with the first wrong rows."""
    cdc = found.cdc
    return {
        "cdc": summary.describe_cdc(cdc) if cdc else None,
        "cdc_statements": cdc.statements if cdc else (),
        "cdc_tables": [
            {
                "name": name,
                "how_wrong": summary.describe_wrong_view(cdc.tables[name]),
                "first": [_both(row) for row in cdc.tables[name].first],
            }
            for name in cdc.differing
        ]
        if cdc
        else [],
        "unfit": [summary.describe_unfit(*each) for each in found.unfit.items()],
        "summary": summary.describe_views(found),
        "drained": summary.describe_drain(found),
        "relative_error": found.relative_error,
        "views": [
            {
                "name": name,
                "status": view.status,
                "compared": view.compared if "compared" in view.model_fields_set else None,
                "how_wrong": summary.describe_wrong_view(view),
                "first": [_both(row) for row in view.first],
            }
            for name, view in found.views.items()
        ],
    }


def _both(row: WrongRow) -> dict[str, Any]:
    """Return a wrong row for the template: the kind of error, and for each column its name,
    expected value, engine's value, and whether they differ."""
    source, engine = row.source or {}, row.engine or {}
    return {
        "finding": row.finding,
        "cells": [
            (
                name,
                summary.printable(source.get(name)),
                summary.printable(engine.get(name)),
                source.get(name) != engine.get(name),
            )
            for name in {**source, **engine}
        ],
    }


def _chart(plot: Plot) -> dict[str, Any]:
    return {
        "data": for_page(plot.chart),
        "meaning": plot.chart.meaning,
        "note": plot.chart.note,
    }


def _dots(plot: Plot) -> dict[str, Any]:
    """Return a chart that has rows for the template: the positions of its points and of the ticks
    of the x axis, in percent."""
    chart = plot.chart
    ends = [line.x + np.nan_to_num(_half(line)) for line in chart.lines]
    ticks = _ticks(float(np.max(np.concatenate(ends))))
    whole = 100 / ticks[-1]
    return {
        "title": chart.title,
        "x_title": chart.x_title,
        "meaning": chart.meaning,
        "rows": chart.rows,
        "ticks": [(whole * tick, f"{tick:,.0f}") for tick in ticks],
        "lines": [
            {
                "name": line.name,
                "look": line.look,
                "points": [
                    {
                        "left": whole * x,
                        "top": 100 * (y + 0.5) / len(chart.rows),
                        "width": whole * 2 * half if math.isfinite(half) else None,
                        "text": f"{line.name}: {chart.x_form.format(x)}{chart.x_unit}",
                    }
                    for x, y, half in zip(line.x, line.y, _half(line), strict=True)
                ],
            }
            for line in chart.lines
        ],
    }


def _ticks(most: float) -> list[float]:
    """Return round values from 0 to at least `most`, which is above 0: six at most."""
    power = 10.0 ** math.floor(math.log10(most / MOST_STEPS))
    step = next(power * of for of in (1, 2, 5, 10) if most / (power * of) <= MOST_STEPS)
    return [step * number for number in range(math.ceil(most / step) + 1)]


def _half(line: Line) -> Floats:
    return np.full(len(line.x), np.nan) if line.half is None else line.half
