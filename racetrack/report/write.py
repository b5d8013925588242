"""Writes the files of a report: report.html, report.csv, report.json, and plots as SVG and PNG."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from racetrack.analysis.compare import CONFIDENCE
from racetrack.clock import utc_now
from racetrack.report.charts import plots
from racetrack.report.collect import Collection, Comparison, Run, Table
from racetrack.report.figures import FIGURES, count_views
from racetrack.report.html import page
from racetrack.results.reference import Published
from racetrack.results.run import RunRecord
from racetrack.results.verification import Verified, ViewStatus


def write(
    out: Path,
    collection: Collection,
    tables: Sequence[Table],
    published: Published | None,
) -> None:
    """Write all files of the report into `out`, created if missing."""
    (out / "plots").mkdir(parents=True, exist_ok=True)
    made, gaps = plots(collection, tables, published)
    for plot in (plot for of in made.values() for plot in of):
        (out / "plots" / f"{plot.chart.name}.svg").write_text(plot.svg, encoding="utf-8")
        (out / "plots" / f"{plot.chart.name}.png").write_bytes(plot.png)
    created_at = utc_now()
    text = page(collection, tables, made, gaps, published, created_at)
    (out / "report.html").write_text(text, encoding="utf-8")
    (out / "report.csv").write_text(_csv(collection.runs), encoding="utf-8")
    report = _json(collection, tables, published, created_at)
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def row(run: Run) -> dict[str, Any]:
    """Return a run as a row: a column per figure, with the unit in its name."""
    asked = run.record.asked
    verdict = run.record.results.verdict if run.record.results else None
    slope = verdict.measured.slope if verdict and verdict.measured else None
    return {
        "run_id": run.record.run_id,
        "tag": run.tag,
        "engine": run.engine,
        "runtime": run.place[0],
        "machine": run.place[1],
        "asked_pageviews_per_s": asked.pageviews_per_s if asked else None,
        "warm_up_s": asked.warm_up_s if asked else None,
        "wait_s": asked.wait_s if asked else None,
        "samples": asked.samples if asked else None,
        "delay_s": asked.delay_s if asked else None,
        "outcome": run.outcome,
        "verdict": run.verdict,
        "window_s": verdict.window_s if verdict else None,
        "lag_slope_low_pct": slope.low_pct if slope else None,
        "lag_slope_high_pct": slope.high_pct if slope else None,
        **run.figures,
        **_views_there(run.record),
        **_views(run.record.verified),
    }


def _views_there(run: RunRecord) -> dict[str, int | None]:
    """Return the engine's number of views and the workload's; None if unknown."""
    there, of = count_views(run) or (None, None)
    return {"views_there": there, "views_of_workload": of}


def _views(found: Verified | None) -> dict[str, Any]:
    """Return the number of right views, the wrong ones, and the time to drain; None unverified."""
    if found is None:
        return {"views_right": None, "views_wrong": None, "drained_after_s": None}
    return {
        "views_right": len(found.named(ViewStatus.RIGHT)),
        "views_wrong": " ".join(found.named(ViewStatus.WRONG, ViewStatus.UNREADABLE)),
        "drained_after_s": found.drained_after_s,
    }


def _csv(runs: Sequence[Run]) -> str:
    """Return all runs as CSV, including those whose `outcome` is not `ok`."""
    text = io.StringIO()
    rows = [row(run) for run in runs]
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _conclusion(of: Comparison) -> str:
    return of.ratio.conclusion if of.ratio else "not compared"


def _json(
    collection: Collection,
    tables: Sequence[Table],
    published: Published | None,
    created_at: str,
) -> dict[str, Any]:
    return {
        "schema_version": 3,
        "kind": "report",
        "created_at": created_at,
        "confidence": CONFIDENCE,
        "definitions": {figure.key: asdict(figure) for figure in FIGURES},
        "runs": [{**row(run), "warnings": run.warnings} for run in collection.runs],
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
                            key: asdict(of) if of else None for key, of in group.means.items()
                        },
                    }
                    for group in table.groups
                ],
                "ratios": [
                    {**asdict(one), "conclusion": _conclusion(one)} for one in table.comparisons
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
        "missing": collection.missing,
        "left_out": collection.left_out,
        "published": published.model_dump() if published else None,
    }
