"""`./race sweep` and `./race vary`: the plan that the options make, or one that is resumed."""

from pathlib import Path

import pytest

from racetrack import plugins, terminal
from racetrack.results.folder import read_plan
from racetrack.results.json_file import write_json
from racetrack.results.sweep import Sweep
from racetrack.run import sweep
from tests.cli.conftest import CarryOut, invoke
from tests.report.folders import RunSpec, run
from tests.some_engines import EXAMPLE, TWO


def test_the_options_are_the_plan(carry_out: CarryOut) -> None:
    typed = f"sweep {' '.join(TWO)} --rates 500,5k --repeat 2 --settle 30s --samples 10"
    workload = plugins.default_workload()
    typed += f" --verify --fault kill:mysql@1s --workload {workload}"
    result = invoke(typed, carry_out=carry_out)
    assert result.exit_code == 0, result.output
    expected = Sweep(
        engines=TWO,
        rates=(500, 5_000),
        repeat=2,
        wait_s=30.0,
        samples=10,
        delay_s=1.0,
        decide_within_s=0,
        verify=True,
        faults=("kill:mysql@1s",),
        settings={"WORKLOAD": workload},
    )
    assert carry_out.plans == [sweep.planned(expected)]
    assert "To see the table: ./race report " in result.output


def test_a_load_profile_replaces_the_rates(carry_out: CarryOut) -> None:
    typed = f"sweep {EXAMPLE} --load 'ramp 1k 3k 60s' --samples 10"
    result = invoke(typed, carry_out=carry_out)
    assert result.exit_code == 0, result.output
    assert [(plan.load, plan.rates, plan.samples) for plan in carry_out.plans] == [
        ("ramp 1k 3k 60s", (2_000,), 60)
    ]


def test_a_run_that_failed_fails_the_sweep(carry_out: CarryOut) -> None:
    carry_out.result = False
    assert invoke(f"sweep {EXAMPLE}", carry_out=carry_out).exit_code == 1


def record_runs(folder: Path, *_: object) -> bool:
    """Takes the place of the function that makes the runs of a plan: it records them."""
    plan = read_plan(folder, Sweep)
    made = tuple(
        one.model_copy(update={"tag": f"{folder.name}_{number}", "outcome": "ok"})
        for number, one in enumerate(plan.runs)
    )
    for one in made:
        run(folder.parent, RunSpec(engine=one.engine, rate=one.pageviews_per_s), str(one.tag))
    write_json(
        folder / "sweep.json", plan.model_copy(update={"runs": made}).model_dump(mode="json")
    )
    return True


@pytest.mark.parametrize(("bound_ms", "code"), [(5_000, 0), (100, 6)])
def test_a_condition_that_holds_for_a_run_sets_the_exit_code(bound_ms: int, code: int) -> None:
    typed = f"sweep {EXAMPLE} --rates 1k,4k --repeat 1 --fail-if 'lag_p99_ms>{bound_ms}'"
    result = invoke(typed, carry_out=record_runs)
    assert result.exit_code == code, result.output
    for rate in ("1,000", "4,000"):
        fails = f"Fails --fail-if 'lag_p99_ms>{bound_ms}': {EXAMPLE} at {rate}/s" in result.output
        assert fails == bool(code)


def test_an_interrupted_sweep_reports_how_to_resume_it(carry_out: CarryOut, tmp_path: Path) -> None:
    carry_out.result = terminal.Interrupted(2)
    plan = Sweep(engines=(EXAMPLE,))
    write_json(tmp_path / "sweep.json", plan.model_dump(mode="json"))
    result = invoke(f"sweep --resume {tmp_path}", carry_out=carry_out)
    assert result.exit_code == 130
    assert f"To go on later: ./race sweep --resume {tmp_path}" in result.output
    assert carry_out.plans == [plan]


@pytest.mark.parametrize(
    ("setting", "values"), [("CONNECT_HEAP", ("2g", "4g")), ("SHOP_KEY_SKEW", ("0", "0.8"))]
)
def test_each_value_of_a_varied_setting_is_in_the_plan(
    carry_out: CarryOut, setting: str, values: tuple[str, ...]
) -> None:
    typed = f"vary {EXAMPLE} {setting} {','.join(values)} --rate 5000 --repeat 1"
    result = invoke(typed, carry_out=carry_out)
    assert result.exit_code == 0, result.output
    (plan,) = carry_out.plans
    assert (plan.vary, plan.values) == (setting, values)
    assert (plan.engines, plan.rates, plan.repeat) == ((EXAMPLE,), (5_000,), 1)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("sweep", "Name at least one ENGINE"),
        (f"sweep {EXAMPLE} --rates 5k --load 'constant 1k'", "exclude each other"),
        (f"sweep {EXAMPLE} --rates 50,fast", "'fast' is not a rate such as"),
        (f"sweep {EXAMPLE} --fault kill:nobody@1s", "nobody"),
        (f"sweep {EXAMPLE} --as-published --rates 50", "--rates can't be chosen with --as-publ"),
        (f"sweep {EXAMPLE} --as-published --workload shop", "--workload can't be chosen"),
        (f"sweep {EXAMPLE} --as-published --fault kill:mysql@1s", "--fault can't be chosen"),
        (f"vary {EXAMPLE} SHOP_KEY_SKEW 0,5", "SHOP_KEY_SKEW: '5' is out of range"),
        (f"vary {EXAMPLE} ADS_KEY_SKEW 0,1", "it is a setting of the workload ads"),
        (f"vary {EXAMPLE} CONNECT_HEAP 2g,much", "CONNECT_HEAP: "),
        (f"vary {EXAMPLE} NO_SUCH_SETTING 1,2", "There is no setting NO_SUCH_SETTING"),
        (f"vary {EXAMPLE} REDPANDA_MEMORY 1G,2G", "REDPANDA_MEMORY has no effect"),
    ],
)
def test_an_invalid_plan_is_refused_before_the_first_run(
    typed: str, says: str, carry_out: CarryOut
) -> None:
    result = invoke(typed, carry_out=carry_out)
    assert result.exit_code == 2, result.output
    assert says in result.output
    assert carry_out.plans == []
