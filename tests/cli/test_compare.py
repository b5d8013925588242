"""`./race compare`: of engines or of recorded folders; the answer, its files and exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from racetrack import cli
from tests.report.folders import RunSpec, run
from tests.some_engines import TWO

ONE, OTHER = TWO


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


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ([], "Name engines or folders"),
        ([ONE, "nosuch"], "'nosuch' is not an engine"),
        ([ONE, ONE], "named twice"),
        (["nowhere", "nothing"], "nowhere is neither an engine"),
        ([ONE, "--rates", "many"], "--rates"),
        ([ONE, OTHER, "--resume", "nowhere"], "--resume"),
        ([ONE, "--fail-if", "nothing>3"], "there is no figure 'nothing'"),
    ],
)
def test_what_can_not_be_compared_is_reported(typed: list[str], says: str) -> None:
    result = compare(*typed)
    assert result.exit_code == 2, result.output
    assert says in result.output


def test_a_folder_that_is_no_comparison_can_not_be_resumed(tmp_path: Path) -> None:
    result = compare("--resume", tmp_path)
    assert result.exit_code == 2
    assert "it is not the folder of a comparison" in result.output


def test_two_sets_of_runs_of_an_engine_are_compared(logs: Path) -> None:
    result = compare(logs / "before", logs / "after")
    assert result.exit_code == 0, result.output
    assert "At 4,000/s `steady (B)` uses 1.3" in result.output
    assert "× the CPU of `steady (A)`" in result.output
    assert "A: before\nB: after\n" in result.output
    assert "No difference found in lag p99 at 4,000/s" in result.output
    assert "CPU at 4,000/s" in result.output


def test_the_other_side_is_all_that_follows_against(logs: Path) -> None:
    after = sorted((logs / "after").iterdir())
    typed = [*after, "--against", *sorted((logs / "before").iterdir())]
    result = compare(*typed, "--fail-if", "cpu_s_per_million>+10%")
    assert result.exit_code == 6, result.output
    assert "`steady (A)` uses 1.00 ± " not in result.output
    assert "cpu_s_per_million changed by +30" in result.output


def test_a_change_within_the_bound_passes(logs: Path) -> None:
    typed = [logs / "before", "--against", logs / "after"]
    result = compare(*typed, "--fail-if", "cpu_s_per_million>+10%", "--fail-if", "fell_behind")
    assert result.exit_code == 0, result.output


def test_a_result_file_can_be_the_other_side(logs: Path, tmp_path: Path) -> None:
    result_file = tmp_path / "steady@1.json"
    result_file.write_text(
        json.dumps(
            {
                "engine": "steady",
                "capacity": {"mean": 100_000, "low": 95_000, "high": 105_000, "n": 3},
                "machine": {"cpu_model": "another"},
                "rates": [
                    {
                        "per_s": 4_000,
                        "verdicts": {"kept up": 3},
                        "cpu_s_per_million": {"mean": 200, "low": 195, "high": 205, "n": 3},
                    }
                ],
            }
        )
    )
    result = compare(logs / "before", "--against", result_file)
    assert result.exit_code == 0, result.output
    assert "At 4,000/s `steady (B)` uses 2.0" in result.output
    assert "measured on different machines" in result.output


def test_the_answer_goes_to_files(logs: Path, tmp_path: Path) -> None:
    table, rows = tmp_path / "answer.md", tmp_path / "runs.csv"
    typed = [logs / "before", logs / "after", "--json", "-", "--markdown", table, "--csv", rows]
    result = compare(*typed)
    record = json.loads(result.stdout)
    assert record["kind"] == "comparison"
    assert record["answer"][0].startswith("At 4,000/s `steady (B)` uses")
    (ratio,) = [
        one["ratio_to_first"]
        for one in record["figures"]
        if one["side"] == "steady (B)" and one["metric"] == "cpu_s_per_million"
    ]
    assert ratio == pytest.approx(1.3, abs=0.05)
    assert table.read_text().startswith("- At 4,000/s `steady (B)` uses")
    assert "| CPU at 4,000/s | CPU-s per million |" in table.read_text()
    assert len(rows.read_text().splitlines()) == 1 + 3
