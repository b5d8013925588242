"""`./race sweep`: the plan that the options make, or one that is taken up again."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli, plugins, terminal
from racetrack.results.json_file import write_json
from racetrack.results.sweep import Sweep
from racetrack.run import sweep
from tests.some_engines import EXAMPLE, TWO


def test_the_options_are_the_plan(plans: list[Sweep]) -> None:
    typed = f"sweep {' '.join(TWO)} --rates 500,5k --repeat 2 --wait 30s --samples 10"
    typed += " --verify --fault kill:mysql@1s"
    result = CliRunner().invoke(cli.race, typed.split())
    assert result.exit_code == 0, result.output
    assert plans == [
        Sweep(
            engines=TWO,
            rates=(500, 5_000),
            repeat=2,
            wait_s=30.0,
            samples=10,
            delay_s=1.0,
            decide_within_s=0,
            verify=True,
            faults=("kill:mysql@1s",),
        )
    ]
    assert "To see the table: ./race report logs/1" in result.output


def test_a_load_profile_replaces_the_rates(plans: list[Sweep]) -> None:
    typed = ["sweep", EXAMPLE, "--load", "ramp 1k 3k 60s", "--samples", "10"]
    result = CliRunner().invoke(cli.race, typed)
    assert result.exit_code == 0, result.output
    assert [(plan.load, plan.rates, plan.samples) for plan in plans] == [
        ("ramp 1k 3k 60s", (2_000,), 60)
    ]


def test_a_workload_is_part_of_the_plan(plans: list[Sweep]) -> None:
    workload = plugins.default_workload()
    result = CliRunner().invoke(cli.race, ["sweep", EXAMPLE, "--workload", workload])
    assert result.exit_code == 0, result.output
    assert [plan.settings for plan in plans] == [{"WORKLOAD": workload}]


def test_an_engine_without_a_script_for_it_is_refused_before_any_run(
    plans: list[Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "SCRIPTS", Path("/nowhere"))
    result = CliRunner().invoke(cli.race, ["sweep", EXAMPLE])
    assert result.exit_code == 2
    assert "can't race on the workload" in result.output
    assert plans == []


def test_a_run_that_failed_fails_it(plans: list[Sweep], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "carry_out", lambda *_: False)
    assert CliRunner().invoke(cli.race, ["sweep", EXAMPLE]).exit_code == 1


def test_whoever_breaks_it_off_is_told_how_to_go_on(
    plans: list[Sweep], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken_up: list[Path] = []

    def carry_out(folder: Path, *_: object) -> bool:
        taken_up.append(folder)
        raise terminal.Interrupted(2)

    monkeypatch.setattr(sweep, "carry_out", carry_out)
    write_json(tmp_path / "sweep.json", Sweep(engines=(EXAMPLE,)).model_dump(mode="json"))
    result = CliRunner().invoke(cli.race, ["sweep", "--resume", str(tmp_path)])
    assert result.exit_code == 130
    assert f"To go on later: ./race sweep --resume {tmp_path}" in result.output
    assert (taken_up, plans) == ([tmp_path], [])


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("sweep", "Name at least one ENGINE"),
        (f"sweep {EXAMPLE} --rates 5k --load 'constant 1k'", "exclude each other"),
        (f"sweep {EXAMPLE} --rates 50,fast", "'fast' is not a rate such as"),
        (f"sweep {EXAMPLE} --fault kill:nobody@1s", "nobody"),
    ],
)
def test_a_plan_that_is_none_is_refused(typed: str, says: str, plans: list[Sweep]) -> None:
    result = CliRunner().invoke(cli.race, shlex.split(typed))
    assert result.exit_code == 2
    assert says in result.output
    assert plans == []


def test_as_published_has_rates_of_its_own(plans: list[Sweep]) -> None:
    options = {
        "--rates": "50",
        "--workload": plugins.default_workload(),
        "--fault": "kill:mysql@1s",
    }
    for option in options.items():
        refused = CliRunner().invoke(cli.race, ["sweep", EXAMPLE, "--as-published", *option])
        assert refused.exit_code == 2
        assert f"{option[0]} can't be chosen with --as-published" in refused.output
    assert plans == []
