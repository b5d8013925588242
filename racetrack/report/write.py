"""Writes a report's files: report.html, report.csv, report.json, and charts as SVG and PNG."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from racetrack.analysis.compare import CONFIDENCE
from racetrack.clock import utc_now
from racetrack.report.charts import plots
from racetrack.report.collect import Collection, Comparison, Table
from racetrack.report.export import Document, flat_record
from racetrack.report.figures import FIGURES
from racetrack.report.html import page


def write(out: Path, collection: Collection, tables: Sequence[Table]) -> None:
    """Write all files of the report into the folder `out`, which is created if it is missing."""
    (out / "plots").mkdir(parents=True, exist_ok=True)
    made, gaps = plots(collection, tables)
    for plot in (plot for of in made.values() for plot in of):
        (out / "plots" / f"{plot.chart.name}.svg").write_bytes(plot.svg)
        (out / "plots" / f"{plot.chart.name}.png").write_bytes(plot.png)
    created_at = utc_now()
    text = page(collection, tables, made, gaps, created_at)
    (out / "report.html").write_text(text, encoding="utf-8")
    runs = Document("runs", [flat_record(run) for run in collection.runs])
    (out / "report.csv").write_text(runs.as_csv(), encoding="utf-8")
    report = _json(collection, tables, created_at)
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _conclusion(of: Comparison) -> str:
    return of.ratio.conclusion if of.ratio else "not compared"


def _json(collection: Collection, tables: Sequence[Table], created_at: str) -> dict[str, Any]:
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
        "scales": [
            {**scale.record.model_dump(mode="json"), "tag": scale.tag}
            for scale in collection.scales
        ],
        "missing": collection.missing,
        "left_out": collection.left_out,
    }
