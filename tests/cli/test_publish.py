"""`./race publish`: writes results and the page, or reports the remedy."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from racetrack import cli, engines
from tests.records import merged, run_json
from tests.some_engines import EXAMPLE

OF_EXAMPLE = engines.find_engine(EXAMPLE)

PAGES = ("index.html", "results.md", "choosing.md")


def publish(tmp_path: Path, *folders: Path) -> Result:
    where = ("--results", str(tmp_path / "results"), "--pages", str(tmp_path))
    return CliRunner().invoke(cli.race, ["publish", *map(str, folders), *where])


@pytest.fixture
def a_run(tmp_path: Path) -> Path:
    path = tmp_path / "logs" / "2026.03.22.05.04.28_UTC_run"
    path.mkdir(parents=True)
    version = {"engine": EXAMPLE, "versions": {OF_EXAMPLE.version_part: "1.2"}}
    (path / "run.json").write_text(json.dumps(run_json(version)))
    return path


def test_it_writes_the_result_and_the_pages_and_without_folders_the_pages_only(
    tmp_path: Path, a_run: Path
) -> None:
    result = publish(tmp_path, a_run.parent)
    assert result.exit_code == 0, result.output
    (file,) = (tmp_path / "results").rglob("*.json")
    assert file.name == f"{EXAMPLE}@1.2.json"
    assert f'"title": "{OF_EXAMPLE.title}"' in file.read_text()
    pages = [tmp_path / page for page in PAGES]
    assert result.output.splitlines() == [str(file), *map(str, pages)]
    before = [page.read_text() for page in pages]
    assert all(OF_EXAMPLE.title in text for text in before)
    pages[0].unlink()
    assert publish(tmp_path).output.splitlines() == [*map(str, pages)]
    assert [page.read_text() for page in pages] == before


def test_a_run_that_failed_is_nothing_to_publish(tmp_path: Path, a_run: Path) -> None:
    record = json.loads((a_run / "run.json").read_text())
    (a_run / "run.json").write_text(json.dumps(merged(record, {"outcome": "Void: other programs"})))
    result = publish(tmp_path, a_run)
    assert result.exit_code == 2
    assert "There is nothing to publish" in result.output
    assert not (tmp_path / "index.html").exists()
