"""Tests that reports on recorded runs stay as they are. `recorded/` contains, of a run, a sweep, a
comparison and a search, the JSON files from which tables are read, and the reports on them.

After a change of what reports say, write them again: python -m tests.report.test_recorded
"""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from racetrack.analysis import table
from racetrack.report.publish import EngineName, publish
from racetrack.report.render import document
from racetrack.report.runs import notes_of, read_runs
from racetrack.report.sheet import sheet

RECORDED = Path(__file__).with_name("recorded")
KINDS = ("run", "sweep", "comparison", "limit")
PUBLISHED = "comparison"
ENGINES = {
    "pg": EngineName("PostgreSQL", "postgres"),
    "kstreams": EngineName("Kafka Streams", "kafka-streams"),
}
# Keys of a document that do not depend on the runs.
OF_ALL = ("schema_version", "created_at", "definitions")


def without_nulls(of: Any) -> Any:
    """Return a JSON value without keys whose value is null, which are most."""
    if isinstance(of, list):
        return [without_nulls(each) for each in of]
    if isinstance(of, dict):
        return {key: without_nulls(each) for key, each in of.items() if each is not None}
    return of


def reports(kind: str, out: Path) -> Iterator[tuple[Path, str]]:
    """Yield the reports on the runs of a kind, and the files in which they are recorded."""
    folder = RECORDED / kind
    rows = table.read([folder])
    made = document(sheet(rows, notes=notes_of(read_runs(rows), rows.rows)))
    content = {key: of for key, of in json.loads(made.as_json()).items() if key not in OF_ALL}
    for key in ("records", "sections"):
        content[key] = [without_nulls(of) for of in content[key]]
    yield folder / "sheet.md", made.as_markdown()
    yield folder / "sheet.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    if kind == PUBLISHED:
        for file in publish([folder], out, ENGINES):
            yield folder / f"published_{file.name.partition('@')[0]}.json", file.read_text()


def compared(file: Path, text: str) -> Any:
    """Return what must be equal: of JSON, numbers with the digits that all processors agree on."""
    if file.suffix != ".json":
        return text.splitlines()
    return json.loads(text, parse_float=lambda number: f"{float(number):.9g}")


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_on_recorded_runs_is_the_recorded_one(kind: str, tmp_path: Path) -> None:
    for file, text in reports(kind, tmp_path):
        assert compared(file, text) == compared(file, file.read_text()), file.name


if __name__ == "__main__":
    with TemporaryDirectory() as out:
        for of in KINDS:
            for file, text in reports(of, Path(out)):
                file.write_text(text)
