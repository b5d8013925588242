"""`./race limit`: its options, its result and its exit codes."""

import pytest

from racetrack.plan.model import Search, WarmUp
from racetrack.plan.resolve import Cell
from racetrack.results.run import SATURATION, SEARCH, WindowRecord
from tests.cli.conftest import MakesRuns, invoke
from tests.some_engines import EXAMPLE, TWO


def found(per_s: float = 20_000, *, is_final: bool = True) -> MakesRuns:
    """Return searches that end with this capacity, and a tenth less within 500 ms."""

    def windows(cell: Cell) -> list[WindowRecord]:
        saturated = WindowRecord(name=SATURATION, figures={"capacity_per_s": per_s})
        key = "sustained_0.5s_per_s"
        search = WindowRecord(
            name=SEARCH,
            figures={key: 0.9 * per_s},
            at_least=() if is_final else (key,),
            remark="lag p99 within 0.5 s",
        )
        return [saturated] if cell.leg == 1 else [search, saturated]

    made = MakesRuns()
    made.windows = windows
    return made


def test_the_options_reach_the_plan() -> None:
    made = found()
    options = "--start 48k --warm-up 3m --within 25m --bound 2s --bound 500ms"
    result = invoke(f"limit {EXAMPLE} {options}", make_runs=made)
    assert result.exit_code == 0, result.output
    (plan,) = made.plans
    phases = [phase for cell in plan.cells for phase in cell.phases]
    warm_ups = [phase for phase in phases if isinstance(phase, WarmUp)]
    assert [(phase.start, phase.for_s) for phase in warm_ups] == [(48_000, 180)] * 2
    (search,) = [phase for phase in phases if isinstance(phase, Search)]
    assert (search.bounds_s, search.within_s) == ((0.5, 2.0), 1_500)


@pytest.mark.parametrize(
    ("outcome", "is_final", "condition", "code"),
    [
        ("ok", True, "capacity_per_s<15000", 0),
        ("ok", True, "capacity_per_s<25000", 6),
        ("ok", False, "capacity_per_s<15000", 1),  # there was no time to end
        ("the engine ended", True, "capacity_per_s<15000", 1),
        ("Void: others.", True, "capacity_per_s<15000", 5),
    ],
)
def test_the_exit_code_is_that_of_the_outcome_the_rates_and_the_condition(
    outcome: str, is_final: bool, condition: str, code: int
) -> None:
    made = found(is_final=is_final)
    made.outcome = outcome
    result = invoke(f"limit {EXAMPLE} --fail-if '{condition}'", make_runs=made)
    assert result.exit_code == code, result.output
    assert ("Fails --fail-if" in result.output) == (code == 6)


def test_engines_alternate_and_their_searches_are_resumed() -> None:
    made = found()
    one, other = TWO
    assert invoke(f"limit {one} {other} --repeats 2", make_runs=made).exit_code == 0
    ((plan,), (folder,)) = made.plans, made.folders
    assert [cell.engine for cell in plan.cells] == [one, one, other, other] * 2
    result = invoke(f"limit --resume {folder}", make_runs=made)
    assert result.exit_code == 0, result.output
    assert len(made.plans) == 1
