"""Tests of variants with a file of settings, such as `dh@tuned`: sections of workloads, settings
without effect, and errors that name file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from racetrack import plugins
from racetrack.config import of_engine
from racetrack.errors import UsageError
from racetrack.plan.model import parse_plan
from racetrack.plan.resolve import Options, ResolvedPlan, resolve
from racetrack.plan.setting_files import TUNED, files_of, read_file
from racetrack.stack.applicability import Applicability
from tests.some_engines import TWO

FIRST, SECOND = TWO
LOADED = 'cores = "shared"\n[[phase]]\nwindow = "10s"\nloads = ["1k"]\n'
MOST_LINES = 80
WriteFile = Callable[..., Path]


@pytest.fixture
def write_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteFile:
    """Return a function that writes `tuned.env` of an engine, in a copy of the engines' folder."""
    for engine in plugins.ENGINES.iterdir():
        (tmp_path / engine.name).mkdir()
        for file in engine.iterdir() if engine.is_dir() else ():
            if file.stem != TUNED:
                (tmp_path / engine.name / file.name).symlink_to(file)
    monkeypatch.setattr(plugins, "ENGINES", tmp_path)

    def write(text: str, engine: str = FIRST) -> Path:
        file = tmp_path / engine / f"{TUNED}.env"
        file.write_text(text)
        return file

    return write


def resolved(*names: str, workload: str | None = None) -> ResolvedPlan:
    options = Options(variants=names, workload=workload)
    return resolve(parse_plan(LOADED, "my.toml"), "my.toml", options)


def limited() -> tuple[str, str, str, str]:
    """Return an engine with a setting that has an effect with one workload only, that workload,
    and another one."""
    for engine, module in plugins.of_all("settings").items():
        exceptions = getattr(module, "APPLICABILITY", Applicability())
        for name, (workload, *_) in exceptions.workloads.items():
            others = (each for each in plugins.workload_names() if each != workload)
            return engine, name, workload, next(others)
    raise AssertionError("no engine has such a setting")


def test_brackets_override_the_file(write_file: WriteFile) -> None:
    write_file("# why\nLOADGEN_SEED=7\n# why\nENGINE_REPLICAS=2\n")
    (cell,) = resolved(f"{FIRST}@tuned[ENGINE_REPLICAS=1]").cells
    assert cell.variant == f"{FIRST}@tuned[ENGINE_REPLICAS=1]"
    assert cell.settings == {"LOADGEN_SEED": "7", "ENGINE_REPLICAS": "1"}


def test_a_section_holds_for_its_workload_and_overrides_lines_above(write_file: WriteFile) -> None:
    write_file(
        "# A title.\n\n# all\nLOADGEN_SEED=1\n[shop]\n# one\n# reason\nLOADGEN_SEED='2'\n"
        "[ads]\nENGINE_REPLICAS=2\n"
    )
    given = [
        (each.name, each.value, each.workload, each.reason) for each in read_file(FIRST, TUNED)
    ]
    assert given == [
        ("LOADGEN_SEED", "1", "", ("all",)),
        ("LOADGEN_SEED", "2", "shop", ("one", "reason")),
        ("ENGINE_REPLICAS", "2", "ads", ()),
    ]
    plan = resolved(f"{FIRST}@tuned", workload="shop")
    assert plan.cells[0].settings == {"LOADGEN_SEED": "2", "WORKLOAD": "shop"}
    assert any("LOADGEN_SEED=2" in remark for remark in plan.remarks)


@pytest.mark.slow
def test_what_has_no_effect_with_the_workload_is_skipped_and_named(write_file: WriteFile) -> None:
    engine, name, workload, other = limited()
    write_file(f"# why\n{name}=true\n# why\nLOADGEN_SEED=7\n", engine)
    (cell,) = resolved(f"{engine}@tuned", workload=workload).cells
    assert cell.settings[name] == "true"
    plan = resolved(f"{engine}@tuned", workload=other)
    assert plan.cells[0].settings == {"LOADGEN_SEED": "7", "WORKLOAD": other}
    (remark,) = [text for text in plan.remarks if name in text]
    assert f"{engine}@tuned" in remark and workload in remark
    with pytest.raises(UsageError, match=f"{name} has no effect.*{workload}"):
        resolved(f"{engine}[{name}=true]", workload=other)


def test_a_variant_of_which_nothing_is_left_is_left_out_and_named(write_file: WriteFile) -> None:
    engine, name, workload, other = limited()
    tuned = f"{engine}@tuned"
    write_file(f"[{workload}]\n# why\n{name}=true\n", engine)
    assert resolved(engine, tuned, workload=workload).variants == (engine, tuned)
    plan = resolved(tuned, engine, workload=other)
    assert plan.variants == (engine,)
    assert any(f"{tuned} is left out" in remark for remark in plan.remarks)
    assert resolved(tuned, workload=other).variants == (tuned,)


def test_default_is_the_engine_without_a_file() -> None:
    assert resolved(f"{FIRST}@default").variants == (FIRST,)
    with pytest.raises(UsageError, match="twice"):
        resolved(FIRST, f"{FIRST}@default")


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("# why\nNO_SUCH_SETTING=1\n", 2, "NO_SUCH_SETTING"),
        ("\n# why\n{other}=1\n", 3, "{other}"),
        ("# why\nSHOP_USERS=9\n", 2, "SHOP_USERS"),
        ("# why\nWORKLOAD=ads\n", 2, "WORKLOAD"),
        ("# why\nENGINE_REPLICAS=many\n", 2, "ENGINE_REPLICAS"),
        ("# why\nLOADGEN_SEED=1\n# why\nLOADGEN_SEED=2\n", 4, "LOADGEN_SEED"),
        ("[nosuch]\n", 1, "nosuch"),
        ("loadgen_seed = 1\n", 1, "loadgen_seed"),
    ],
)
def test_an_error_names_file_line_and_setting(
    write_file: WriteFile, text: str, line: int, named: str
) -> None:
    other = of_engine(SECOND)[0].upper()
    file = write_file(text.format(other=other))
    with pytest.raises(UsageError) as raised:
        resolved(SECOND, f"{FIRST}@tuned")
    assert f"{file}, line {line}: " in str(raised.value)
    assert named.format(other=other) in str(raised.value)


def test_engines_on_one_input_need_equal_settings_of_the_core(write_file: WriteFile) -> None:
    write_file("# why\nLOADGEN_SEED=1\n")
    write_file("# why\nLOADGEN_SEED=2\n", SECOND)
    with pytest.raises(UsageError, match="LOADGEN_SEED=1 and LOADGEN_SEED=2"):
        resolved(f"{FIRST}@tuned+{SECOND}@tuned")


def test_every_setting_of_a_committed_file_has_a_reason() -> None:
    for engine in plugins.engine_names():
        for name in files_of(engine):
            assert [each.name for each in read_file(engine, name) if not any(each.reason)] == []
            text = (plugins.ENGINES / engine / f"{name}.env").read_text()
            assert len(text.splitlines()) <= MOST_LINES, "at most a page"
