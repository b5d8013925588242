"""Renderers of a sheet: for a terminal, and as Markdown, CSV and JSON.

docs/run-folder.md describes the keys of flat records.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from racetrack.analysis.calibration import Finding
from racetrack.analysis.table import as_record
from racetrack.clock import utc_now
from racetrack.metrics import METRICS
from racetrack.report.sheet import Grid, Sheet, as_claims, as_figures
from racetrack.results.verification import Verified

SCHEMA_VERSION = 4
# Columns of Markdown tables.
OF_FINDINGS = ("what", "programmed", "measured", "bound", "within")
OF_VIEWS = ("view", "status", "compared", "missing", "extra", "different")
STYLES = {"kept up": "green", "fell behind": "red"}
# Width of the output in a pipe or a file.
PLAIN_WIDTH = 160

FlatRecord = dict[str, Any]


@dataclass(frozen=True)
class Document:
    """Records to export. `kind` is the type of the document; `more` are further keys in its JSON
    form. `markdown` is its Markdown form; if it is empty, that is a table of `columns`."""

    kind: str
    records: Sequence[FlatRecord]
    more: Mapping[str, Any] = field(default_factory=dict)
    markdown: str = ""
    columns: Sequence[str] = ()

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
        text = io.StringIO()
        writer = csv.DictWriter(text, _columns(self.records), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return text.getvalue()

    def as_markdown(self) -> str:
        """Return the tables for people as Markdown."""
        if self.markdown:
            return self.markdown
        rows = [[_cell(key, record.get(key)) for key in self.columns] for record in self.records]
        return markdown_table(self.columns, rows)


def document(sheet: Sheet) -> Document:
    """Return the document of a sheet: its rows as records; and its answers, figures, claims and
    notes."""
    sections = [
        {
            "place": section.title,
            "answer": section.answers,
            "claims": as_claims(section),
            "figures": as_figures(section),
            "notes": [str(note) for note in section.notes],
        }
        for section in sheet.sections
    ]
    more = {"definitions": definitions(), "sections": sections, "left_out": sheet.left_out}
    return Document(sheet.kind, [as_record(row) for row in sheet.rows], more, markdown(sheet))


def finding_record(finding: Finding, machine: str) -> FlatRecord:
    """Return a row of the calibration as a flat record."""
    return {
        "what": finding.what,
        "machine": machine,
        "programmed": finding.programmed,
        "measured": finding.measured,
        "bound": finding.bound,
        "within": finding.within,
    }


def view_records(verified: Verified, common: FlatRecord) -> list[FlatRecord]:
    """Return the result of each view as a flat record, and of each CDC topic as `cdc_<table>`.
    `common` is part of every record."""
    tables = verified.cdc.tables if verified.cdc else {}
    topics = {f"cdc_{name}": table for name, table in tables.items()}
    return [
        {
            **common,
            "drained_after_s": verified.drained_after_s,
            "view": name,
            "status": str(view.status),
            "reason": view.reason,
            "compared": view.compared,
            "missing": view.missing,
            "extra": view.extra,
            "different": view.different,
            "twice": view.miscounted.twice if view.miscounted else None,
            "lost": view.miscounted.lost if view.miscounted else None,
        }
        for name, view in {**verified.views, **topics}.items()
    ]


def definitions() -> dict[str, dict[str, str]]:
    """Return the title, the unit and the meaning of each figure."""
    return {
        metric.key: {"title": metric.title, "unit": metric.unit, "means": metric.means}
        for metric in METRICS.values()
    }


def markdown(sheet: Sheet) -> str:
    """Return a sheet as Markdown."""
    parts = []
    for section in sheet.sections:
        parts.append(f"### {section.title}\n")
        parts.append(_bullets(section.answers))
        parts += [markdown_table(grid.heading, grid.rows) for grid in section.grids]
        parts.append(_bullets([str(note) for note in section.notes]))
    parts.append(_bullets(sheet.left_out))
    return "\n".join(filter(None, parts))


def _bullets(lines: Sequence[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table as Markdown."""
    heading, *lines = (f"| {' | '.join(map(_escaped, line))} |\n" for line in (columns, *rows))
    return "".join([heading, f"|{'---|' * len(columns)}\n", *lines])


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", ", ")


def _columns(records: Sequence[FlatRecord]) -> list[str]:
    return list(dict.fromkeys(key for record in records for key in record))


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in METRICS:
        return METRICS[key].number(value)
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def console(file: TextIO | None = None) -> Console:
    """Return a console that writes to `file`, by default to standard output. The output has colours
    on a terminal, and is plain and wide otherwise."""
    plain = Console(file=file, highlight=False)
    return plain if plain.is_terminal else Console(file=file, highlight=False, width=PLAIN_WIDTH)


def show(out: Console, sheet: Sheet) -> None:
    """Print a sheet. Text from run folders is not interpreted as markup."""
    for section in sheet.sections:
        out.print(Text(f"\n{section.title}", style="bold"), soft_wrap=True)
        _lines(out, section.answers, "bold")
        for grid in section.grids:
            out.print()
            out.print(_rich(grid))
            _lines(out, [grid.note] if grid.note else [], "dim")
        _lines(out, [_graded(str(note), note.grade) for note in section.notes], "yellow")
    _lines(out, [f"left out: {text}" for text in sheet.left_out], "yellow")


def _graded(text: str, grade: str) -> str:
    return f"{grade.lower()}: {text}" if grade else text


def _rich(grid: Grid) -> RichTable:
    made = RichTable(box=None, pad_edge=False, header_style="dim")
    for number, title in enumerate(grid.heading):
        is_text = number < grid.left or title == "verdict"
        made.add_column(Text(title), justify="left" if is_text else "right", no_wrap=number == 0)
    for row in grid.rows:
        made.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    return made


def _lines(out: Console, lines: Sequence[str], style: str = "") -> None:
    for line in lines:
        out.print(Text(line, style=style), soft_wrap=True)
