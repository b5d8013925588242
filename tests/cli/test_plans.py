"""`./race plan`, and `./race compare` of a plan."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from racetrack import cli
from racetrack.cli import plans
from racetrack.cli.compare import outcome_code
from racetrack.config import load
from racetrack.plan.resolve import Options
from racetrack.results.experiment import ExperimentRecord, ExperimentRun
from tests.cli.conftest import MakesRuns, invoke
from tests.some_engines import TWO

ONE, OTHER = TWO
MINE = f"""
variants = ["{ONE}[ENGINE_REPLICAS=1]", "{OTHER}"]
[[phase]]
window = "10s"
loads = ["1k", "2k", "3k"]
"""


def race(*typed: object) -> Result:
    return CliRunner().invoke(cli.race, [*map(str, typed)])


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(MINE)
    return file


@pytest.mark.slow
def test_a_plan_is_printed_with_its_duration_and_nothing_starts(mine: Path) -> None:
    for typed in (("quick", ONE, OTHER), (mine,), (mine, OTHER, "--repeats", 2, "--load", "5k")):
        result = race("plan", *typed)
        assert result.exit_code == 0, result.output
        assert "minutes" in result.output and OTHER in result.output
    assert f"{ONE}[" not in result.output
    assert not load().logs_folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "plan", "variants"),
    [
        (f"{ONE} --quick", "quick", [ONE]),
        (f"{ONE} {OTHER} --plan sweep --load 1k,2k", "sweep", [ONE, OTHER]),
        (f"'{ONE}[ENGINE_REPLICAS=1|2]' --plan scale", "scale", None),
    ],
)
def test_variants_and_plans_are_measured(
    typed: str, plan: str, variants: list[str] | None, makes_runs: MakesRuns
) -> None:
    result = invoke(f"compare {typed} --repeats 1", make_runs=makes_runs)
    assert result.exit_code == 0, result.output
    (made,) = makes_runs.plans
    labels = variants or [f"{ONE}[ENGINE_REPLICAS={n}]" for n in (1, 2)]
    assert made.name == plan and list(made.variants) == labels


def test_a_job_gets_the_text_of_the_plan(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plans.for_job(None) == {}
    (variable,) = plans.for_job(str(mine)).items()
    planned = plans.resolved(str(mine), Options(seed=1))
    mine.unlink()
    monkeypatch.setenv(*variable)
    again = plans.resolved(str(mine), Options(seed=1))
    assert again == planned


def test_the_exit_code_is_that_of_the_last_outcome_of_each_run() -> None:
    def code(*outcomes: tuple[int, str | None]) -> int:
        runs = [
            ExperimentRun(variant=ONE, repeat=1, cell=cell, outcome=outcome)
            for cell, outcome in outcomes
        ]
        return outcome_code(ExperimentRecord(name="x", seed=1, plan={}, runs=tuple(runs)))

    assert code((0, "ok"), (1, "ok")) == 0
    assert code((0, None), (0, "ok")) == 0
    assert code((0, "Void: noise."), (1, "ok")) == 5
    assert code((0, "Void: noise."), (1, "it failed")) == 1
    assert code((0, None)) == 1
