"""`./race compare`: of engines or of recorded folders; the answer, its files and exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from racetrack import cli
from racetrack.report.publish import EngineName, publish
from tests.report.folders import RunSpec, edit, run
from tests.run_json import read_run


def compare(*typed: object) -> Result:
    return CliRunner().invoke(cli.race, ["compare", *map(str, typed)])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs each: of an engine, and of the same one with 30 % more CPU."""
    folder = tmp_path_factory.mktemp("logs")
    for name, cpu_pct in (("before", 40.0), ("after", 52.0)):
        for seed in (1, 2, 3):
            spec = RunSpec(cpu_pct=cpu_pct, rss_gib=1.0 + seed / 100, seed=seed)
            run(folder / name, spec)
    return folder


@pytest.mark.slow
def test_the_other_side_is_all_that_follows_against(logs: Path) -> None:
    after = sorted((logs / "after").iterdir())
    typed = [*after, "--against", *sorted((logs / "before").iterdir())]
    result = compare(*typed, "--fail-if", "cpu_s_per_million>+10%")
    assert result.exit_code == 6, result.output
    assert "cpu_s_per_million changed by +30" in result.output
    typed = [logs / "before", "--against", logs / "after"]
    result = compare(*typed, "--fail-if", "cpu_s_per_million>+10%", "--fail-if", "fell_behind")
    assert result.exit_code == 0, result.output


def test_a_result_file_can_be_the_other_side(logs: Path, tmp_path: Path) -> None:
    publish([logs / "after"], tmp_path, {"steady": EngineName("Steady", "racetrack")})
    (file,) = tmp_path.rglob("*.json")
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "machine": {"cpu_model": "another"}}))
    result = compare(logs / "before", "--against", file)
    assert result.exit_code == 0, result.output
    assert "`steady (A)` uses the least CPU time at 4,000/s" in result.output
    assert "different machines" in result.output


def test_another_workload_is_refused(logs: Path, tmp_path: Path) -> None:
    run(tmp_path / "other", RunSpec(settings={"WORKLOAD": "ads"}))
    exported = tmp_path / "other.json"
    whole = compare(tmp_path / "other", tmp_path / "other", "--json", exported)
    assert whole.exit_code == 0, whole.output
    for typed in ([tmp_path / "other"], ["--against", tmp_path / "other"], [exported]):
        result = compare(logs / "before", *typed)
        assert result.exit_code == 2, result.output
        assert "shop and ads" in result.output
        assert "uses the least CPU" not in result.output


def test_versions_and_settings_that_differ_are_printed(logs: Path, tmp_path: Path) -> None:
    changed = run(tmp_path / "changed", RunSpec(settings={"KAFKA_HEAP": "8g"}))
    versions = read_run(changed)["versions"]
    edit(changed, versions={**versions, "racetrack": "9.9", "steady": "2"})
    result = compare(logs / "before", tmp_path / "changed")
    assert result.exit_code == 0, result.output
    lines = ["KAFKA_HEAP: 1g (A), 8g (B)", "STEADY VERSION: not recorded (A), 2 (B)"]
    assert [line for line in result.output.splitlines() if line.endswith("(B)")] == lines
    same = compare(logs / "before", logs / "after")
    assert "KAFKA_HEAP" not in same.output


def test_the_answer_and_its_claims_are_recorded(logs: Path) -> None:
    record = json.loads(compare(logs / "before", logs / "after", "--json", "-").stdout)
    assert record["kind"] == "comparison"
    (section,) = record["sections"]
    assert section["answer"][0].startswith("`steady (A)` uses the least CPU time at 4,000/s")
    (claim,) = [one for one in section["claims"] if one["metric"] == "cpu_s_per_million"]
    (pair,) = [one for one in claim["pairs"] if one["of"] == "steady (B)"]
    assert pair["ratio"] == pytest.approx(1.3, abs=0.05) and pair["claimed"]
