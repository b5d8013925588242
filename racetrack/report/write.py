"""A report's files: report.html, report.csv, report.json, and plots/ with an SVG and a PNG each."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from racetrack.analysis.compare import CONFIDENCE
from racetrack.report import verified
from racetrack.report.collect import Collection, Run
from racetrack.report.definitions import FIGURES
from racetrack.report.groups import Table
from racetrack.report.html import page
from racetrack.report.plots import plots
from racetrack.runfolder import utc_now


def write(
    out: Path,
    collection: Collection,
    tables: Sequence[Table],
    published: Mapping[str, Any] | None,
) -> None:
    """Write all files of the report into `out`, which is made if it is not there."""
    (out / "plots").mkdir(parents=True, exist_ok=True)
    made, gaps = plots(collection, tables, published)
    for plot in (plot for of in made.values() for plot in of):
        (out / "plots" / f"{plot.chart.name}.svg").write_text(plot.svg, encoding="utf-8")
        (out / "plots" / f"{plot.chart.name}.png").write_bytes(plot.png)
    created_at = utc_now()
    told = page(collection, tables, made, gaps, published, created_at)
    (out / "report.html").write_text(told, encoding="utf-8")
    (out / "report.csv").write_text(_csv(collection.runs), encoding="utf-8")
    report = _json(collection, tables, published, created_at)
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def row(run: Run) -> dict[str, Any]:
    """A run in one line: a column a figure, with its unit in its name."""
    asked = run.json.get("asked", {})
    verdict = run.json.get("results", {}).get("verdict", {})
    slope = (verdict.get("measured") or {}).get("slope") or {}
    return {
        "tag": run.tag,
        "engine": run.engine,
        "runtime": run.track[0],
        "machine": run.track[1],
        "asked_pageviews_per_s": asked.get("pageviews_per_s"),
        "warm_up_s": asked.get("warm_up_s"),
        "wait_s": asked.get("wait_s"),
        "samples": asked.get("samples"),
        "delay_s": asked.get("delay_s"),
        "outcome": run.outcome,
        "verdict": run.verdict,
        "window_s": verdict.get("window_s"),
        "lag_slope_low_pct": slope.get("low_pct"),
        "lag_slope_high_pct": slope.get("high_pct"),
        **run.figures,
        **_views(run.json.get("verified")),
    }


def _views(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """How many views were right, and which were not; None where nobody looked."""
    if found is None:
        return {"views_right": None, "views_wrong": None, "drained_after_s": None}
    wrong = [name for status in ("wrong", "unreadable") for name in verified.named(found, status)]
    return {
        "views_right": len(verified.named(found, "right")),
        "views_wrong": " ".join(wrong),
        "drained_after_s": found["drained_after_s"],
    }


def _csv(runs: Sequence[Run]) -> str:
    """Of all runs, also those whose `outcome` is not `ok`."""
    text = io.StringIO()
    rows = [row(run) for run in runs]
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json(
    collection: Collection,
    tables: Sequence[Table],
    published: Mapping[str, Any] | None,
    created_at: str,
) -> dict[str, Any]:
    return {
        "schema_version": 1,
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
                    {**asdict(one), "says": one.ratio.says if one.ratio else "not compared"}
                    for one in table.comparisons
                ],
                "differences": table.differences,
            }
            for table in tables
        ],
        "limits": collection.limits,
        "missing": collection.missing,
        "published": published,
    }
