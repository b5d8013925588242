"""Flat records of results, such as runs and searches, and their export as JSON, CSV and Markdown.

docs/run-folder.md describes the columns.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from racetrack.analysis.calibration import Finding
from racetrack.clock import utc_now
from racetrack.report.collect import Limit, Run, place_of
from racetrack.report.figures import BY_KEY, OF_LOADS, count_views, finite, number
from racetrack.results.repeats import RepeatedRuns
from racetrack.results.run import RunRecord
from racetrack.results.verification import Verified, ViewStatus
from racetrack.workloads.contract import workload_of

SCHEMA_VERSION = 2
# Columns of a Markdown table, in this order; columns that no record has are left out.
IN_MARKDOWN = (
    "engine",
    "requested_pageviews_per_s",
    "outcome",
    "verdict",
    "capacity_per_s",
    "lag_p50_ms",
    "lag_p99_ms",
    "cpu_s_per_million",
    "cpu_mean_pct",
    "pss_max_gib",
    "rss_max_gib",
    "what",
    "programmed",
    "measured",
    "bound",
    "within",
    "view",
    "status",
    "compared",
    "missing",
    "extra",
    "different",
    "tag",
)

FlatRecord = dict[str, Any]


@dataclass(frozen=True)
class Document:
    """Records to export. `kind` is the type of the document; `more` are further keys in its JSON
    form. If `markdown` is not empty, it is the Markdown form, instead of a table of the records."""

    kind: str
    records: Sequence[FlatRecord]
    more: Mapping[str, Any] = field(default_factory=dict)
    markdown: str = ""

    def as_json(self) -> str:
        """Return the document as JSON. Unknown values are null."""
        whole = {
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            "created_at": utc_now(),
            **self.more,
            "records": self.records,
        }
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"

    def as_csv(self) -> str:
        """Return the records as CSV, one line per record. Unknown values are empty."""
        columns = list(dict.fromkeys(key for record in self.records for key in record))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return text.getvalue()

    def as_markdown(self) -> str:
        """Return a table of the main columns, rounded for people."""
        if self.markdown:
            return self.markdown
        there = {key for record in self.records for key in record}
        columns = [key for key in IN_MARKDOWN if key in there]
        rows = [[_cell(key, record.get(key)) for key in columns] for record in self.records]
        return markdown_table(columns, rows)


def document_of_answers(
    kind: str,
    answers: Sequence[str],
    rows: Sequence[Sequence[str]],
    conditions: Sequence[str],
    figures: Sequence[Mapping[str, Any]],
    records: Sequence[FlatRecord],
) -> Document:
    """Return a document whose Markdown form contains the answers, the table `rows` (the headings
    first), and the conditions of the measurement."""
    heading, *others = rows
    parts = [_bullets(answers), markdown_table(heading, others), _bullets(conditions)]
    more = {"answer": answers, "conditions": conditions, "figures": figures}
    return Document(kind, records, more, markdown="\n".join(filter(None, parts)))


def _bullets(lines: Sequence[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table as Markdown."""
    heading, *lines = (f"| {' | '.join(line)} |\n" for line in (columns, *rows))
    return "".join([heading, f"|{'---|' * len(columns)}\n", *lines])


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in BY_KEY:
        return number(key, value)
    if isinstance(value, bool):
        return "yes" if value else "NO"
    text = f"{value:,.0f}" if isinstance(value, int | float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def flat_record(run: Run) -> FlatRecord:
    """Return a run as a flat record, with one column per figure. A column's name ends with the
    unit; its value is None if the figure was not measured or is infinite."""
    arguments = run.record.arguments
    verdict = run.record.results.verdict if run.record.results else None
    slope = verdict.measured.slope if verdict and verdict.measured else None
    return {
        "run_id": run.record.run_id,
        "tag": run.tag,
        "engine": run.engine,
        "replicas": run.record.settings.get("engine_replicas", 1),
        "beside": " ".join(run.record.beside),
        "workload": workload_of(run.record.settings),
        "runtime": run.place[0],
        "machine": run.place[1],
        "requested_pageviews_per_s": arguments.pageviews_per_s if arguments else None,
        "load": arguments.load if arguments else None,
        "warm_up_s": arguments.warm_up_s if arguments else None,
        "wait_s": arguments.wait_s if arguments else None,
        "samples": arguments.samples if arguments else None,
        "delay_s": arguments.delay_s if arguments else None,
        "outcome": run.outcome,
        "verdict": run.verdict,
        "window_s": verdict.window_s if verdict else None,
        "lag_slope_low_pct": slope.low_pct if slope else None,
        "lag_slope_high_pct": slope.high_pct if slope else None,
        **run.figures,
        **_load(run.record),
        **_views_there(run.record),
        **_views(run.record.verified),
    }


def flat_search(search: Limit) -> FlatRecord:
    """Return a capacity search as a flat record. For example, `sustained_2s_per_s` is the highest
    rate at which the p99 of the lag stayed within 2 s."""
    record = search.record
    capacity = record.capacity
    runtime, machine = place_of(record)
    return {
        "tag": search.tag,
        "engine": record.engine,
        "replicas": record.settings.get("engine_replicas", 1),
        "workload": workload_of(record.settings),
        "runtime": runtime,
        "machine": machine,
        "outcome": record.outcome,
        "capacity_per_s": capacity.per_s if capacity else None,
        "capacity_low_per_s": finite(capacity.low) if capacity else None,
        "capacity_high_per_s": finite(capacity.high) if capacity else None,
        "is_lower_bound": not record.is_capacity_of_all_runs if capacity else None,
        "minutes": record.minutes,
        **{
            f"sustained_{one.bound_ms / 1000:g}s_per_s": one.sustained_per_s
            for one in record.sustainable
        },
    }


def flat_pieces(record: RepeatedRuns) -> list[FlatRecord]:
    """Return each measured window as a flat record. `requested_pageviews_per_s` is None at
    saturation."""
    return [
        {
            "tag": piece.tag,
            "engine": piece.engine,
            "replicas": piece.replicas,
            "workload": record.workload,
            "runtime": record.runtime,
            "machine": str(record.machine),
            "repeat": piece.repeat,
            "requested_pageviews_per_s": piece.pageviews_per_s,
            "outcome": piece.outcome,
            "verdict": piece.verdict,
            "is_lower_bound": piece.is_lower_bound,
            **piece.figures,
        }
        for piece in record.pieces
    ]


def flat_finding(finding: Finding, machine: str) -> FlatRecord:
    """Return a row of the calibration as a flat record."""
    return {
        "what": finding.what,
        "machine": machine,
        "programmed": finding.programmed,
        "measured": finding.measured,
        "bound": finding.bound,
        "within": finding.within,
    }


def flat_views(found: Verified, common: FlatRecord) -> list[FlatRecord]:
    """Return the result of each view as a flat record, and of each CDC topic as `cdc_<table>`.
    `common` is part of every record."""
    tables = found.cdc.tables if found.cdc else {}
    topics = {f"cdc_{name}": of for name, of in tables.items()}
    return [
        {
            **common,
            "drained_after_s": found.drained_after_s,
            "view": name,
            "status": str(of.status),
            "reason": of.reason,
            "compared": of.compared,
            "missing": of.missing,
            "extra": of.extra,
            "different": of.different,
            "twice": of.miscounted.twice if of.miscounted else None,
            "lost": of.miscounted.lost if of.miscounted else None,
        }
        for name, of in {**found.views, **topics}.items()
    ]


def _load(run: RunRecord) -> dict[str, float | None]:
    """Return the figures on the effect of a load profile. They are None for a constant rate."""
    effect = run.results.load if run.results else None
    return {key: getattr(effect, key) if effect else None for key in OF_LOADS}


def _views_there(run: RunRecord) -> dict[str, int | None]:
    """Return the engine's number of views and the workload's; None if unknown."""
    there, of = count_views(run) or (None, None)
    return {"views_there": there, "views_of_workload": of}


def _views(found: Verified | None) -> dict[str, Any]:
    """Return the number of right views, the names of wrong views, and the time to drain. All are
    None if the run was not verified."""
    if found is None:
        return {"views_right": None, "views_wrong": None, "drained_after_s": None}
    return {
        "views_right": len(found.named(ViewStatus.RIGHT)),
        "views_wrong": " ".join(found.named(ViewStatus.WRONG, ViewStatus.UNREADABLE)),
        "drained_after_s": found.drained_after_s,
    }
