"""docs/run-folder.md describes every key of flat records, except those of figures, which a report
defines."""

import json
import re
from pathlib import Path

from click.testing import CliRunner

from racetrack import cli
from racetrack.analysis.calibration import Finding
from racetrack.config import REPO
from racetrack.metrics import METRICS
from racetrack.report.render import finding_record, view_records
from racetrack.results.verification import Verified
from tests.records import verified
from tests.report.folders import RIGHT, RunSpec, run, search
from tests.report.test_publish import compared


def documented_keys() -> set[str]:
    """Return the keys in the section's list, whose lines are `key, key    meaning`."""
    page = (REPO / "docs" / "run-folder.md").read_text()
    section = page.partition("\n## Flat records\n")[2].partition("\n## ")[0]
    keys = re.findall(r"^ {4}(\w+(?:, \w+)*) {2,}", section, re.MULTILINE)
    return {key for line in keys for key in line.split(", ")}


def exported_keys(folder: Path, *typed: object) -> set[str]:
    """Return the keys of all records that a command writes."""
    file = folder / "records.json"
    words = [*map(str, typed), "--json", str(file)]
    result = CliRunner().invoke(cli.race, words)
    assert result.exit_code == 0, result.output
    return {key for record in json.loads(file.read_text())["records"] for key in record}


def test_the_page_describes_every_key_that_is_no_figure(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "report"
    run(logs, RunSpec())
    search(logs, RunSpec().engine, 100_000)
    folder = compared(tmp_path / "compared")
    keys = exported_keys(tmp_path, "report", logs, "--out", out)
    keys |= exported_keys(tmp_path, "compare", folder, folder)
    keys |= set(finding_record(Finding("", "", "", within=True), ""))
    (view,) = view_records(Verified.model_validate(verified(users=RIGHT)), {})
    keys |= set(view)
    figures = set(METRICS)
    assert figures < keys
    assert documented_keys() == keys - figures
