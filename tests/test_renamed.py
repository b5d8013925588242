"""Tests that names of the previous release are understood: settings, keys of JSON files, and those
of the generator's control port. `report/recorded/` has files of the previous schema version."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dotenv import dotenv_values

from loadgen import config as of_generator
from loadgen.commands import Commands
from racetrack import config as settings
from racetrack import renamed
from racetrack.analysis import table
from racetrack.cli.report import publish
from racetrack.config import REPO
from racetrack.errors import UsageError
from racetrack.metrics import ACHIEVED
from racetrack.plan import variants
from racetrack.plan.model import parse_plan
from racetrack.report.standings import read_results
from racetrack.results.folder import read_run
from racetrack.results.run import SCHEMA_VERSION
from tests.loadgen.test_control import FakeLoad

RECORDED = Path(__file__).parent / "report" / "recorded"
(RUN,) = RECORDED.glob("run/*_pg_300")
RESULT = RECORDED / "previous" / "pg@15.18.json"
OLD, NEW = "PAGEVIEWS_PARTITIONS", "EVENTS_PARTITIONS"
PLAN = """
variants = ["{of}"]
settings = {{{settings}}}
[[phase]]
window = "10s"
loads = ["1k"]
"""


def content_of(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def test_a_folder_of_the_previous_version_is_read_and_none_before_it(tmp_path: Path) -> None:
    before, run = content_of(RUN / "run.json"), read_run(RUN)
    assert (before["schema_version"], run.schema_version) == (SCHEMA_VERSION - 1, SCHEMA_VERSION)
    assert run.arguments and run.results and run.verified
    assert run.arguments.events_per_s == before["arguments"]["pageviews_per_s"]
    assert run.results.published_events == before["results"]["published_pageviews"]
    assert run.results.processed_events == before["results"]["processed_pageviews"]
    assert run.settings[NEW.lower()] == before["settings"][OLD.lower()]
    # Names of the shop's tables stay.
    assert run.verified.source_rows == before["verified"]["source_rows"]
    (row,) = table.read([RUN]).rows
    assert row.values[ACHIEVED.key] == before["results"]["achieved_pageviews_per_s"]
    (tmp_path / "run.json").write_text(json.dumps({**before, "schema_version": SCHEMA_VERSION - 2}))
    with pytest.raises(UsageError, match=str(SCHEMA_VERSION - 2)):
        read_run(tmp_path)


def test_recoveries_and_texts_that_are_compared_name_events_and_tables_stay() -> None:
    recovery = {"fault": "kill:pg@5s", "pageviews": {"after_s": 1.0}}
    tables = ["item_summary.pageviews", "Flink can't take pageviews/2", "Unfit: pageviews (2)"]
    old = {
        "faults": [recovery],
        "source_rows": {"pageviews": 3},
        "outcome": "Pageviews were counted 9 ms too early",
        "verdict": {"warnings": ["1 of 30 pageviews", "9.0 pageviews/s of 9", *tables]},
    }
    assert renamed.in_record(old) == {
        "faults": [{"fault": "kill:pg@5s", "events": {"after_s": 1.0}}],
        "source_rows": {"pageviews": 3},
        "outcome": "Events were counted 9 ms too early",
        "verdict": {"warnings": ["1 of 30 events", "9.0 events/s of 9", *tables]},
    }


def test_published_results_of_the_previous_version_are_read_and_written_again(
    tmp_path: Path,
) -> None:
    place = tmp_path / "results" / "shop" / "amd-epyc-family-25-model-17-2-cores-24-gib"
    place.mkdir(parents=True)
    file = Path(shutil.copy(RESULT, place))
    before = content_of(file)
    (read,) = read_results(tmp_path / "results")
    pages = shutil.copytree(REPO / "docs", tmp_path / "docs")
    arguments = ["--results", str(tmp_path / "results"), "--pages", str(pages)]
    done = CliRunner().invoke(publish, arguments)
    assert done.exit_code == 0, done.output
    after = content_of(file)
    assert after["schema_version"] == before["schema_version"] + 1 == read.schema_version
    for window, window_before in zip(after["windows"], before["windows"], strict=True):
        figures = window_before["figures"]
        assert window["figures"].get(ACHIEVED.key) == figures.get("achieved_pageviews_per_s")
    text = file.read_text()
    assert "pageviews_per_s" not in text
    assert CliRunner().invoke(publish, arguments).exit_code == 0
    assert file.read_text() == text


def test_an_old_name_in_the_environment_is_understood_and_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment = {OLD: "8", "PATH": "/bin", "PAGEVIEWS_PER_SECOND_START": ""}
    renamed.in_environment(environment)
    assert environment == {NEW: "8", "PATH": "/bin"}
    (line,) = capsys.readouterr().err.splitlines()
    assert OLD in line and NEW in line


def test_two_values_under_two_names_end_a_command_before_it_starts() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "racetrack", "engines"],
        cwd=REPO,
        env={**os.environ, OLD: "8", NEW: "6"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert f"{OLD}=8" in done.stderr and f"{NEW}=6" in done.stderr and not done.stdout


def test_an_old_name_in_a_file_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".env"
    file.write_text(settings.ENV_FILE.read_text().replace(f"\n{NEW}=6\n", f"\n{OLD}=8\n"))
    assert dotenv_values(file).keys() & {OLD, NEW} == {OLD}
    monkeypatch.setattr(settings, "ENV_FILE", file)
    monkeypatch.delenv(NEW, raising=False)
    assert settings.load().events_partitions == settings.defaults().events_partitions == 8
    monkeypatch.setenv(NEW, "7")  # the environment takes precedence over the file
    assert settings.load().events_partitions == 7
    assert settings.load({OLD: "9"}).events_partitions == 9


def test_an_old_name_in_a_variant_or_a_plan_is_understood() -> None:
    (variant,) = variants.parse(f"dh[{OLD}=8]")
    assert str(variant) == f"dh[{NEW}=8]"
    plan = parse_plan(PLAN.format(of="dh", settings=f"{OLD} = 8"), "mine.toml")
    assert plan.settings == {NEW: "8"}
    for of, given in ((f"dh[{OLD}=8 {NEW}=6]", ""), ("dh", f"{OLD} = 8, {NEW} = 6")):
        with pytest.raises(UsageError, match=NEW):  # two values
            parse_plan(PLAN.format(of=of, settings=given), "mine.toml")


def test_the_generator_understands_old_names() -> None:
    password = {"MYSQL_PASSWORD": "secret"}
    assert of_generator.load({**password, OLD: "8"}).partitions == 8
    assert of_generator.load({**password, OLD: "8", NEW: ""}).partitions == 8
    with pytest.raises(of_generator.ConfigError, match=rf"{OLD}=.*{NEW}"):
        of_generator.load({**password, OLD: "8", NEW: "6"})


def test_the_control_port_understands_the_old_key() -> None:
    commands = Commands(FakeLoad())
    answer = commands.execute(b"set Pageviews_per_second 7").text
    assert answer == "Setting events_per_second: old value was 50, new value is 7."
    assert commands.execute(b"get pageviews_per_second").text == "events_per_second 7"
