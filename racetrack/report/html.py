"""A report's files: report.html, which works offline, report.csv and report.json; with many runs
also a page per run."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from racetrack import __version__
from racetrack.analysis.noise import describe_quotas
from racetrack.analysis.table import Row, Table, changed_settings
from racetrack.clock import utc_now
from racetrack.metrics import (
    LAG_MAX,
    LAG_P50,
    LAG_P99,
    METRICS,
    READ_AGE_P50,
    READ_AGE_P99,
    READ_TIME_P50,
    READ_TIME_P99,
)
from racetrack.report import charts, summary
from racetrack.report.chart_data import Chart, for_page
from racetrack.report.render import document
from racetrack.report.runs import RunFolder, warnings_by_grade, why_no_figures
from racetrack.report.sheet import Section, Sheet
from racetrack.results.base import StrictModel
from racetrack.results.figures import Answers, Quantiles, ViewLag
from racetrack.results.verification import Verified, WrongRow
from racetrack.terminal import Progress

# With more runs than this, each has a page of its own, so that the report stays small.
MOST_INLINE = 20
# Figures in the tables of views and of reads.
OF_VIEW = (LAG_P50, LAG_P99, LAG_MAX)
OF_READ = (READ_TIME_P50, READ_TIME_P99, READ_AGE_P50, READ_AGE_P99)
# Parts of modules that a page has no use for: types, imports and exports.
NOT_IN_PAGES = re.compile(r"/\*\*.*?\*/\s*|^import [^;]*;\n|^export (?=const )", re.M | re.S)
SIGNS = {
    "kept up": "✓",
    "fell behind": "✗",
    "undecided": "?",
    "generator-bound": "⊘",
    "broker-bound": "⊘",
    "harness-bound": "⊘",
    "failed": "!",
    "right": "✓",
    "wrong": "✗",
    "unreadable": "!",
}


def write(
    out: Path, table: Table, sheet: Sheet, runs: Sequence[RunFolder], progress: Progress
) -> None:
    """Write all files of the report into the folder `out`, which is created if it is missing."""
    out.mkdir(parents=True, exist_ok=True)
    created_at = utc_now()
    beside = len(runs) > MOST_INLINE
    shown = []
    for number, run in enumerate(runs):
        progress(number, len(runs))
        details = _run(run, runs, table)
        if beside:
            (out / "runs").mkdir(exist_ok=True)
            page = f"runs/{_file_name(run.tag)}.html"
            text = _page("run.html.j2", title=run.tag, created_at=created_at, run=details)
            (out / page).write_text(text, encoding="utf-8")
            details = {**details, "page": page}
        shown.append(details)
    text = _page(
        "report.html.j2",
        title=f"Racetrack: {', '.join(dict.fromkeys(run.record.engine for run in runs))}",
        created_at=created_at,
        sections=[_section(section, table, runs) for section in sheet.sections],
        left_out=sheet.left_out,
        runs=shown,
        all_figures=METRICS.values(),
    )
    (out / "report.html").write_text(text, encoding="utf-8")
    made = document(sheet)
    (out / "report.csv").write_text(made.as_csv(), encoding="utf-8")
    (out / "report.json").write_text(made.as_json(), encoding="utf-8")


def _file_name(tag: str) -> str:
    """Convert a tag to a safe file name, since it is read from a file."""
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in tag)


def _page(template: str, **values: Any) -> str:
    return (
        environment()
        .get_template(template)
        .render(
            css=own_file("uplot/uPlot.min.css") + own_file("page.css"),
            licence=own_file("uplot/LICENSE"),
            uplot=own_file("uplot/uPlot.iife.min.js"),
            modules=joined("charts", "page"),
            version=__version__,
            **values,
        )
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
        names=_names,
    )
    return environment


def _names(text: str) -> Markup:
    """Return a sentence as HTML, in which names in backticks are code. Everything else is
    escaped."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704


def own_file(name: str) -> Markup:
    """Return a style sheet or script of this package without escaping, which is safe since it
    contains no text from run folders."""
    return Markup(files("racetrack.report.page").joinpath(name).read_text("utf-8"))  # noqa: S704


def joined(*names: str) -> Markup:
    """Return modules as one script, since a page that works offline has no files to import: without
    imports, exports and types. A name must not occur in two of them."""
    text = "".join(own_file(f"{name}.js") for name in names)
    return Markup(NOT_IN_PAGES.sub("", text))  # noqa: S704


def _section(section: Section, table: Table, runs: Sequence[RunFolder]) -> dict[str, Any]:
    rows = [row for row in table.rows if str(row.place) == section.title]
    ok = [row for row in rows if row.outcome == "ok"]
    graded: dict[str, list[tuple[str, str]]] = {}
    for note in section.notes:
        graded.setdefault(note.grade, []).append((note.text, note.about))
    return {
        "title": section.title,
        "single": _hero(ok[0], runs) if len(ok) == 1 and ok[0].folder else None,
        "answers": section.answers,
        "grids": section.grids,
        "notes": list(graded.items()),
        "charts": [_chart(chart) for chart in charts.comparisons(rows, section.estimates)],
    }


def _hero(row: Row, runs: Sequence[RunFolder]) -> dict[str, Any]:
    """Return the verdict on the only run of a section, for the template."""
    run = next(run for run in runs if run.path == row.folder)
    results = run.record.results
    return {
        "engine": row.variant,
        "load": str(row.load or row.window),
        "verdict": row.verdict,
        "reason": results.verdict.reason if results else row.remark,
    }


def _run(run: RunFolder, runs: Sequence[RunFolder], table: Table) -> dict[str, Any]:
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
            "published_events": results.published_events,
            "processed_events": results.processed_events,
        }
        if results
        else {},
    }
    made, gaps = charts.run_charts(run)
    session = charts.replayed_session(run, runs)
    rows = [row for row in table.rows if row.folder == run.path and row.outcome == "ok"]
    why_not = why_no_figures(record)
    return {
        "tag": run.tag,
        "page": "",
        "engine": record.engine,
        "load": str(rows[0].load or rows[0].window) if len(rows) == 1 else f"{len(rows)} windows",
        "verdict": "failed" if why_not else rows[0].verdict if len(rows) == 1 else "none",
        "why_not": why_not,
        "reason": results.verdict.reason if results else "",
        "warnings": [
            (str(grade), texts) for grade, texts in warnings_by_grade(run).items() if texts
        ],
        "gaps": gaps,
        "windows": [
            {
                "name": row.window,
                "verdict": row.verdict,
                "remark": row.remark,
                "figures": [(metric, row.values.get(key)) for key, metric in METRICS.items()],
            }
            for row in rows
        ],
        "charts": [_chart(chart) for chart in (*_laid_over(session, run), *made)],
        "facts": [(name, list(pairs.items())) for name, pairs in facts.items() if pairs],
        "views": [_view(view) for view in results.views] if results else [],
        "reads": [_read(answers) for answers in results.reads] if results else [],
        "verified": _verified(record.verified) if record.verified else None,
    }


def _laid_over(session: RunFolder | None, run: RunFolder) -> Sequence[Chart]:
    return charts.laid_over(session, run) if session else ()


def _view(view: ViewLag) -> dict[str, Any]:
    """Return the values of a view for the template, with its figures."""
    shown = _plain(view)
    return {**shown, "figures": [(metric, shown[metric.key]) for metric in OF_VIEW]}


def _read(answers: Answers) -> dict[str, Any]:
    """Return the values of a query's answers for the template, with its figures: None for infinite
    and missing times and ages."""
    shown = _plain(answers)
    quantiles = Quantiles.model_fields
    values = [(shown[part] or {}).get(name) for part in ("time", "age") for name in quantiles]
    return {**shown, "figures": list(zip(OF_READ, values, strict=True))}


def _plain(model: StrictModel) -> dict[str, Any]:
    """Return the values of a model for the template. Infinite values become None."""
    values: dict[str, Any] = json.loads(model.model_dump_json())
    return values


def _verified(verified: Verified) -> dict[str, Any]:
    """Return the result of a verification for the template: CDC topics compared with MySQL, and
    views compared with their sources, with the first wrong rows."""
    cdc = verified.cdc
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
        "unfit": [summary.describe_unfit(*unfit) for unfit in verified.unfit.items()],
        "summary": summary.describe_views(verified),
        "drained": summary.describe_drain(verified),
        "relative_error": verified.relative_error,
        "views": [
            {
                "name": name,
                "status": view.status,
                "compared": view.compared if "compared" in view.model_fields_set else None,
                "how_wrong": summary.describe_wrong_view(view),
                "first": [_both(row) for row in view.first],
            }
            for name, view in verified.views.items()
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
