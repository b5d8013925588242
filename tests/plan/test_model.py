"""Tests of the grammar of variants, and of the errors of a plan, which name the key path and what
is allowed there."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from racetrack.errors import UsageError
from racetrack.plan import variants
from racetrack.plan.model import Window, find_plan, parse_plan, read_plan_file
from racetrack.plan.resolve import Options, ResolvedPlan, resolve
from tests.some_engines import TWO

FIRST, SECOND = TWO
WINDOW = '[[phase]]\nwindow = "10s"\n'


def resolved(
    text: str,
    *names: str,
    environment: Mapping[str, str] | None = None,
    cores: tuple[int, ...] = (),
    **options: Any,
) -> ResolvedPlan:
    chosen = Options(variants=names, **options)
    plan = parse_plan(text, "my.toml")
    return resolve(plan, "my.toml", chosen, environment=environment or {}, cores=cores)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("dh", ["dh"]),
        ("dh@tuned", ["dh@tuned"]),
        ("dh@default[A=1]", ["dh[A=1]"]),
        ("flink[A=1|2 B=x]", ["flink[A=1 B=x]", "flink[A=2 B=x]"]),
        ("flink[A=1|2]+pg", ["flink[A=1]+pg", "flink[A=2]+pg"]),
        ("dh[CPUS=0,1]", ["dh[CPUS=0,1]"]),
        ('dh[J="-Xa -Xb|c]+"|x]', ['dh[J="-Xa -Xb|c]+"]', "dh[J=x]"]),
        ("dh[A=|1]", ["dh[A=]", "dh[A=1]"]),
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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dh+",
        "dh[",
        "dh]",
        "dh[A]",
        "dh[a=1]",
        "dh[A=1 A=2]",
        "dh[A=1|1]",
        "dh+dh",
        'dh[A="1]',
        "dh[A=1]+pg[A=2]",
        f"dh[A={'|'.join(map(str, range(300)))}]",
        "+".join(f"{name}[A=1|2|3|4|5]" for name in ("dh", "pg", "mz")),
    ],
)
def test_a_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        variants.parse(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("phase = [", "line 1"),
        ("repeats = 1", "phase is missing"),
        (f'{WINDOW}loads = ["5k", "x"]', "phase[1].loads[2]"),
        (f"{WINDOW}top = {{ samples = 3, evry = 1 }}", "phase[1].top.evry"),
        (f'{WINDOW}top = {{ samples = 3, every = "1s" }}', "phase[1]"),
        ('[[phase]]\nwndow = "10s"', "warm_up, window, saturate"),
        (f'variants = ["dh", "dh["]\n{WINDOW}', "variants[2].of"),
        (f"[settings]\nworkload = 1\n{WINDOW}", "settings"),
        (f'[each]\nworkload = ["ads"]\n{WINDOW}', "each"),
        (f'{WINDOW}[[variant]]\nof = "dh"\nlodas = []', "variant[1].lodas"),
        ("[[phase]]\nwindow = inf", "phase[1].window"),
        ('[[phase]]\nwindow = "9s"', "phase[1]"),
    ],
)
def test_an_error_names_file_and_key_path(text: str, named: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_plan(text, "my.toml")
    assert str(error.value).startswith("my.toml")
    assert named in str(error.value)


LOADED = f'{WINDOW}loads = ["1k"]'
SATURATE = '[[phase]]\nsaturate = "20s"\n'
TOP = f'{WINDOW}top = {{ samples = 10, every = "1s" }}\nloads = ["2k", "3k"]'
CONTRADICTED = f'of = "{FIRST}[ENGINE_REPLICAS=1]"\nsettings = {{ ENGINE_REPLICAS = 2 }}'


@pytest.mark.parametrize(
    ("text", "names", "named"),
    [
        (LOADED, (), "variants"),
        (LOADED, ("nosuch",), "nosuch"),
        (LOADED, (f"{FIRST}@nosuch",), "nosuch"),
        (LOADED, (FIRST, FIRST), "twice"),
        (LOADED, (f"{FIRST}[NO_SUCH=1]",), "NO_SUCH"),
        (LOADED, (f"{FIRST}[ENGINE_REPLICAS=x]",), "ENGINE_REPLICAS"),
        (f'variants = ["{FIRST}"]\n{LOADED}', (SECOND,), SECOND),
        (f'variants = ["{FIRST}", "{FIRST}"]\n{LOADED}', (), "twice"),
        (f'{WINDOW}loads = ["80%"]', (FIRST,), "phase[1].loads[1]"),
        (f'{WINDOW}loads = ["80% of slowest"]', (FIRST,), "scout"),
        (f'{WINDOW}loads = ["spike 1k 2k 3s"]', (FIRST,), "top"),
        (WINDOW, (FIRST,), "measures nothing"),
        (f"repeats = 10000\n{LOADED}", (FIRST,), "10,000"),
        (f'fresh = "load"\n{LOADED}\n{LOADED}', (FIRST,), "fresh"),
        (f'{WINDOW}loads = ["5k", "5000"]', (FIRST,), "phase[1].loads"),
        (f"{LOADED}\n{LOADED}", (FIRST,), "twice on one stack"),
        (f"{SATURATE}{SATURATE}", (FIRST,), "two phases"),
        (f'{SATURATE}{WINDOW}loads = ["150%"]', (FIRST,), "above the capacity"),
        (f'[[phase]]\nwarm_up = 5\nat = "highest"\n{SATURATE}', (FIRST,), "warm-up"),
        (f"{LOADED}\n[[phase]]\nverify = true", (FIRST,), "verify"),
        (LOADED, (f"{FIRST}+{SECOND}",), "on one input"),
        (f"{LOADED}\n{TOP}", (FIRST,), "top"),
        (f'[[phase]]\nsearch = ["2s"]\n{SATURATE}', (FIRST,), "phase[1].search"),
        (f'reference = "nosuch.json"\n{LOADED}', (FIRST,), "nosuch.json"),
        (f"{LOADED}\n[[variant]]\n{CONTRADICTED}", (), "ENGINE_REPLICAS=2"),
    ],
)
def test_an_impossible_plan_is_refused(text: str, names: tuple[str, ...], named: str) -> None:
    with pytest.raises(UsageError, match=named.replace("[", r"\[")):
        resolved(text, *names)


def test_a_label_can_leave_out_a_setting() -> None:
    assert variants.without("flink@tuned[A=1 Q=q0]+pg", "Q") == "flink@tuned[A=1]+pg"
    assert variants.without("a name of its own", "Q") == "a name of its own"


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


def test_a_run_on_a_stack_of_its_own_may_be_verified_once() -> None:
    top = TOP.replace('"2k", "3k"', '"2k"')
    text = f"{top}\nonce = true\n[[phase]]\nverify = true\nonce = true\n{SATURATE}fresh = true\n"
    plan = resolved(f"repeats = 2\n{text}", FIRST)
    assert [(cell.repeat, cell.leg, cell.is_single) for cell in plan.cells] == [
        (1, 1, True),
        (1, 2, False),
        (2, 1, False),
    ]


def test_variants_may_differ_in_their_phases_only() -> None:
    own = "label = 'longer'\n[[variant.phase]]\nwindow = '20s'\nloads = ['1k']"
    text = f'{LOADED}\n[[variant]]\nof = "{FIRST}"\n[[variant]]\nof = "{FIRST}"\n{own}'
    assert resolved(text).variants == (FIRST, "longer")


def test_samples_of_top_may_have_fractions_of_seconds() -> None:
    top = 'window = "7.7s"\ntop = { samples = 7, every = "1.1s" }'
    assert parse_plan(f"[[phase]]\n{top}", "my.toml")


def test_the_settings_of_the_environment_are_part_of_the_plan_but_no_secret_and_no_place() -> None:
    kept = {"ENGINE_REPLICAS": "2", "RUNTIME": "native"}
    given = {**kept, "MYSQL_ROOT_PASSWORD": "x", "KAFKA_PORT": "1", "HOME": "/"}
    plan = resolved(LOADED, FIRST, environment=given)
    assert plan.environment == kept
    assert plan.settings_of(plan.cells[0])["ENGINE_REPLICAS"] == "2"


def test_a_plan_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("nosuch", str(tmp_path / "x.toml")):
        with pytest.raises(UsageError, match="There is no"):
            find_plan(name)
    (tmp_path / "x.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"x\.toml"):
        read_plan_file(find_plan(str(tmp_path / "x.toml")))


def test_the_command_line_filters_the_variants_of_a_plan() -> None:
    text = f'variants = ["{FIRST}[ENGINE_REPLICAS=1|2]", "{SECOND}"]\n{LOADED}'
    assert len(resolved(text).variants) == 3
    assert resolved(text, SECOND).variants == (SECOND,)
    assert len(resolved(text, FIRST).variants) == 2
    assert resolved(text, f"{FIRST}[ENGINE_REPLICAS=2]").variants == (
        f"{FIRST}[ENGINE_REPLICAS=2]",
    )


def test_settings_follow_the_order_of_precedence() -> None:
    text = (
        'cores = "shared"\n'
        "settings = { LOADGEN_SEED = 1, BROKER_REPLICAS = 1, ENGINE_REPLICAS = 1 }\n"
        f'{LOADED}\n[[variant]]\nof = "{FIRST}[ENGINE_REPLICAS=2]"\n'
    )
    given = {"LOADGEN_SEED": "9", "ENGINE_REPLICAS": "9"}
    (mine,) = resolved(text, environment=given, workload="ads").cells
    assert mine.settings == {"BROKER_REPLICAS": "1", "ENGINE_REPLICAS": "2", "WORKLOAD": "ads"}
    (fixed,) = resolved(f"fixed = true\n{text}", environment=given).cells
    assert fixed.settings["LOADGEN_SEED"] == "1"


def test_the_environment_gives_a_fixed_plan_only_its_place() -> None:
    text = (
        'fixed = true\ncores = "shared"\n'
        "settings = { NOISE_GATE = true, KAFKA_PORT = 1, LOADGEN_SEED = 1 }\n"
        f'variants = ["{FIRST}"]\n{LOADED}'
    )
    given = {"NOISE_GATE": "false", "KAFKA_PORT": "2", "LOADGEN_SEED": "2"}
    (cell,) = resolved(text, environment=given).cells
    assert cell.settings == {"LOADGEN_SEED": "1"}


@pytest.mark.parametrize(
    ("cores", "given", "expected"),
    [
        ((0, 1), {}, ("1", "0")),
        ((0, 1, 2), {}, ("2", "0,1")),
        ((0,), {}, ("", "")),
        ((0, 1), {"BROKER_CPUS": "0"}, ("", "")),
        ((0, 1), {"ENGINE_CPUS": ""}, ("", "")),
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
    made = resolved(LOADED, *TWO, environment=os.environ, cores=cores)
    for cell in made.cells:
        names = ("ENGINE_CPUS", "HARNESS_CPUS")
        assert tuple(cell.settings.get(name, "") for name in names) == expected
    assert any("core" in remark for remark in made.remarks) == (not given)


def test_variants_that_differ_in_their_cores_keep_them() -> None:
    text = f'variants = ["{FIRST}[ENGINE_CPUS=0|0-1]", "{SECOND}"]\n{LOADED}'
    made = resolved(text, cores=(0, 1))
    found = [(cell.settings["ENGINE_CPUS"], "HARNESS_CPUS" in cell.settings) for cell in made.cells]
    assert sorted(found) == [("0", False), ("0-1", False), ("1", True)]


def test_later_repeats_need_phases_that_go_together() -> None:
    once, half = f"{SATURATE}once = true\n", f'{WINDOW}loads = ["50%"]\n'
    for text in (once, once + half):
        resolved(text, FIRST)
        with pytest.raises(UsageError):
            resolved(f"repeats = 2\n{text}", FIRST)


def test_given_loads_replace_those_of_the_window_that_each_repeat_has() -> None:
    verified = TOP.replace('"2k", "3k"', '"2k"') + "\nonce = true\n"
    half = f'{SATURATE}fresh = true\n{WINDOW}loads = ["50%"]\n'
    plan = resolved(f"repeats = 2\n{verified}{half}", FIRST, loads=("30k", "80%"))
    phases = [phase for cell in plan.cells for phase in cell.phases]
    loads = [phase.loads for phase in phases if isinstance(phase, Window)]
    assert loads == [("2k",), ("30k", "80%"), ("30k", "80%")]
