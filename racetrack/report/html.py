"""A report's files: report.html, which is self-contained, report.csv and report.json."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from racetrack import __version__
from racetrack.analysis.capacity import scale_of
from racetrack.analysis.intervals import CONFIDENCE
from racetrack.analysis.noise import describe_quotas
from racetrack.clock import utc_now
from racetrack.report import scaling, searches, summary
from racetrack.report.chart_data import Chart, Floats, Line, for_page
from racetrack.report.charts import all_charts
from racetrack.report.collect import Collection, Run, Table, changed_settings
from racetrack.report.export import Document, flat_record
from racetrack.report.figures import BY_KEY, COMPARED, FIGURES, SHOWN, Grade, number
from racetrack.report.tables import (
    describe_answer,
    describe_costs,
    describe_means,
    format_mean,
    format_ratio,
    graded_warnings,
)
from racetrack.results.base import StrictModel
from racetrack.results.figures import Answers, Quantiles
from racetrack.results.repeats import ScaleRecord
from racetrack.results.verification import Verified, WrongRow
from racetrack.terminal import Progress, no_progress

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


def write(
    out: Path,
    collection: Collection,
    tables: Sequence[Table],
    progress: Progress = no_progress,
) -> None:
    """Write all files of the report into the folder `out`, which is created if it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    charts, gaps = all_charts(collection, tables, progress)
    created_at = utc_now()
    text = page(collection, tables, charts, gaps, created_at)
    (out / "report.html").write_text(text, encoding="utf-8")
    runs = Document("runs", [flat_record(run) for run in collection.runs])
    (out / "report.csv").write_text(runs.as_csv(), encoding="utf-8")
    report = _report_json(collection, tables, created_at)
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def page(
    collection: Collection,
    tables: Sequence[Table],
    charts: Mapping[str, Sequence[Chart]],
    gaps: Mapping[str, Sequence[str]],
    created_at: str,
) -> str:
    """Return the page. `charts` and `gaps` are the results of `all_charts`."""
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
            _table(table, charts.get(f"table{i}", ())) for i, table in enumerate(tables, start=1)
        ],
        limits=collection.limits,
        limits_by_place=[
            {
                "place": place,
                "found": found,
                "answer": searches.describe_ranking(found),
                "dots": next(map(_dots, charts.get(f"limits{number}", ())), None),
                "bounds": searches.bounds_of(found),
                "agreement": searches.describe_agreement(limit.record for limit in found),
            }
            for number, (place, found) in enumerate(collection.limits_by_place.items(), start=1)
        ],
        scales=[
            _scale(scale.record, charts.get(f"scale{number}", ()))
            for number, scale in enumerate(collection.scales, start=1)
        ],
        missing=[*collection.missing, *collection.left_out],
        runs=[_run(run, charts.get(run.tag, ()), gaps.get(run.tag, ())) for run in collection.runs],
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


def _table(table: Table, charts: Sequence[Chart]) -> dict[str, Any]:
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
        "charts": [_chart(chart) for chart in charts],
        "failed": [(run.tag, run.why_not) for run in table.failed],
    }


def _scale(record: ScaleRecord, charts: Sequence[Chart]) -> dict[str, Any]:
    scale = scale_of(record)
    heading, *rows = scaling.table(scale)
    return {
        "place": scaling.place(record),
        "answer": scaling.sentences(scale),
        "charts": [_chart(chart) for chart in charts],
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


def _run(run: Run, charts: Sequence[Chart], gaps: Sequence[str]) -> dict[str, Any]:
    record, results = run.record, run.record.results
    quotas = record.machine.cpu_quotas
    facts: dict[str, Mapping[str, Any]] = {
        "Arguments": record.arguments.model_dump(exclude_unset=True) if record.arguments else {},
        "Versions": record.versions,
        "Machine": {
            **record.machine.model_dump(exclude_unset=True, exclude={"cpu_quotas"}),
            **({"cpu_quotas": describe_quotas(quotas)} if quotas else {}),
        },
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
        "charts": [_chart(chart) for chart in charts],
        "facts": [(name, list(pairs.items())) for name, pairs in facts.items() if pairs],
        "views": [_plain(view) for view in results.views] if results else [],
        "reads": [_read(answers) for answers in results.reads] if results else [],
        "verified": _verified(record.verified) if record.verified else None,
    }


def _read(answers: Answers) -> dict[str, Any]:
    """Return the values of a query's answers for the template, with None for infinite and missing
    times and ages."""
    shown = _plain(answers)
    unknown = dict.fromkeys(Quantiles.model_fields)
    return {**shown, "time": shown["time"] or unknown, "age": shown["age"] or unknown}


def _plain(model: StrictModel) -> dict[str, Any]:
    """Return the values of a model for the template. Infinite values become None."""
    values: dict[str, Any] = json.loads(model.model_dump_json())
    return values


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


def _chart(chart: Chart) -> dict[str, Any]:
    return {"data": for_page(chart), "meaning": chart.meaning, "note": chart.note}


def _dots(chart: Chart) -> dict[str, Any]:
    """Return a chart that has rows for the template: the positions of its points and of the ticks
    of the x axis, in percent."""
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


def _report_json(
    collection: Collection, tables: Sequence[Table], created_at: str
) -> dict[str, Any]:
    return {
        "schema_version": 4,
        "kind": "report",
        "created_at": created_at,
        "confidence": CONFIDENCE,
        "definitions": {figure.key: asdict(figure) for figure in FIGURES},
        "runs": [{**flat_record(run), "warnings": run.warnings} for run in collection.runs],
        "tables": [
            {
                "runtime": table.runtime,
                "machine": table.machine,
                "groups": [
                    {
                        "engine": group.label,
                        "pageviews_per_s": group.rate,
                        "tags": [run.tag for run in group.runs],
                        "verdicts": dict(group.verdicts),
                        "means": {
                            key: {"mean": of.mean, "half": of.half, "n": of.n} if of else None
                            for key, of in group.means.items()
                        },
                    }
                    for group in table.groups
                ],
                "ratios": [
                    {
                        **asdict(one),
                        "conclusion": one.ratio.conclusion if one.ratio else "not compared",
                    }
                    for one in table.comparisons
                ],
                "costs": {label: asdict(cost) for label, cost in table.costs.items()},
                "differences": table.differences,
            }
            for table in tables
        ],
        "limits": [
            {**limit.record.model_dump(mode="json"), "tag": limit.tag}
            for limit in collection.limits
        ],
        "scales": [
            {**scale.record.model_dump(mode="json"), "tag": scale.tag}
            for scale in collection.scales
        ],
        "missing": collection.missing,
        "left_out": collection.left_out,
    }
