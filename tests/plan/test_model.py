"""Tests of the grammar of variants, of plans that are refused, and of the settings of a plan."""

from typing import Any

import pytest

from racetrack.errors import UsageError
from racetrack.plan import variants
from racetrack.plan.model import parse_plan
from racetrack.plan.resolve import Options, ResolvedPlan, resolve
from tests.some_engines import TWO

FIRST, SECOND = TWO
WINDOW = '[[phase]]\nwindow = "10s"\n'


def resolved(
    text: str,
    *names: str,
    cores: tuple[int, ...] = (),
    **options: Any,
) -> ResolvedPlan:
    chosen = Options(variants=names, **options)
    plan = parse_plan(text, "my.toml")
    return resolve(plan, "my.toml", chosen, cores=cores)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("dh@default[A=1]", ["dh[A=1]"]),
        ("flink[A=1|2 B=x]", ["flink[A=1 B=x]", "flink[A=2 B=x]"]),
        ("dh[CPUS=0,1]", ["dh[CPUS=0,1]"]),
        ('dh[J="-Xa -Xb|c]+"|x]', ['dh[J="-Xa -Xb|c]+"]', "dh[J=x]"]),
    ],
)
def test_a_text_stands_for_variants_whose_labels_can_be_read_again(
    text: str, labels: list[str]
) -> None:
    parsed = variants.parse(text)
    assert [str(variant) for variant in parsed] == labels
    for variant in parsed:
        assert variants.parse(str(variant)) == [variant]
    (quoted,) = variants.parse("dh[OPTIONS='-Xa |+]' B=2]")
    assert quoted.members[0].settings == {"OPTIONS": "-Xa |+]", "B": "2"}


LOADED = f'{WINDOW}loads = ["1k"]'
SATURATE = '[[phase]]\nsaturate = "20s"\n'
CONTRADICTED = f'of = "{FIRST}[ENGINE_REPLICAS=1]"\nsettings = {{ ENGINE_REPLICAS = 2 }}'


@pytest.mark.parametrize(
    ("text", "names", "named"),
    [
        (LOADED, (f"{FIRST}@nosuch",), "nosuch"),
        (LOADED, (FIRST, FIRST), "twice"),
        (LOADED, (f"{FIRST}[ENGINE_REPLICAS=x]",), "ENGINE_REPLICAS"),
        (f'{WINDOW}loads = ["80%"]', (FIRST,), "phase[1].loads[1]"),
        (f"repeats = 10000\n{LOADED}", (FIRST,), "10,000"),
        (f"{LOADED}\n{LOADED}", (FIRST,), "twice on one stack"),
        (f'{SATURATE}{WINDOW}loads = ["150%"]', (FIRST,), "above the capacity"),
        (LOADED, (f"{FIRST}+{SECOND}",), "on one input"),
        (f"{LOADED}\n[[variant]]\n{CONTRADICTED}", (), "ENGINE_REPLICAS=2"),
    ],
)
def test_an_impossible_plan_is_refused(text: str, names: tuple[str, ...], named: str) -> None:
    with pytest.raises(UsageError, match=named.replace("[", r"\[")):
        resolved(text, *names)


QUERIES = '[settings]\nWORKLOAD = "nexmark"\n[each]\nNEXMARK_QUERIES = ["q0", "q5"]\n'


@pytest.mark.slow
def test_each_value_of_a_setting_is_a_variant_of_each_engine() -> None:
    text = f"{SATURATE}{QUERIES}"
    both = ("flink[NEXMARK_QUERIES=q0]", "flink[NEXMARK_QUERIES=q5]")
    plan = resolved(text, "flink")
    assert plan.variants == both
    of_own = "flink[NEXMARK_QUERIES=q4]"
    assert resolved(text, of_own).variants == (of_own,)
    chosen = resolved(text, "flink", queries="q5")
    assert (chosen.variants, chosen.workload) == (("flink",), "nexmark q5")
    # Q5 has windows, which are saturated long enough.
    times = [phase.for_s for cell in plan.cells for phase in cell.phases]  # type: ignore[union-attr]
    assert sorted(times) == [20, 120]


def test_the_settings_of_the_environment_are_part_of_the_plan_but_no_secret_and_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = {"ENGINE_REPLICAS": "2", "RUNTIME": "native"}
    others = {"MYSQL_ROOT_PASSWORD": "x", "KAFKA_PORT": "1"}
    for name, value in (kept | others).items():
        monkeypatch.setenv(name, value)
    plan = resolved(LOADED, FIRST)
    assert kept.items() <= plan.environment.items()
    assert not {*others, "HOME"} & plan.environment.keys()
    assert plan.settings_of(plan.cells[0])["ENGINE_REPLICAS"] == "2"


def test_settings_follow_the_order_of_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        'cores = "shared"\n'
        "settings = { LOADGEN_SEED = 1, BROKER_REPLICAS = 1, ENGINE_REPLICAS = 1 }\n"
        f'{LOADED}\n[[variant]]\nof = "{FIRST}[ENGINE_REPLICAS=2]"\n'
    )
    monkeypatch.setenv("LOADGEN_SEED", "9")
    monkeypatch.setenv("ENGINE_REPLICAS", "9")
    (mine,) = resolved(text, workload="ads").cells
    assert mine.settings == {"BROKER_REPLICAS": "1", "ENGINE_REPLICAS": "2", "WORKLOAD": "ads"}
    (fixed,) = resolved(f"fixed = true\n{text}").cells
    assert fixed.settings["LOADGEN_SEED"] == "1"


@pytest.mark.parametrize(
    ("cores", "given", "expected"),
    [
        ((0, 1), {}, ("1", "0")),
        ((0, 1), {"BROKER_CPUS": "0"}, ("", "")),
        ((0, 1), {"RUNTIME": "kubernetes"}, ("", "")),
    ],
)
def test_an_engine_has_cores_of_its_own_unless_the_user_assigns_cores(
    cores: tuple[int, ...],
    given: dict[str, str],
    expected: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    made = resolved(LOADED, *TWO, cores=cores)
    for cell in made.cells:
        names = ("ENGINE_CPUS", "HARNESS_CPUS")
        assert tuple(cell.settings.get(name, "") for name in names) == expected
    assert any("core" in remark for remark in made.remarks) == (not given)
