"""Tests of results data from run folders: figures are those of the runs; unrelated runs are
refused."""

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from racetrack.analysis import table
from racetrack.analysis.windows import values
from racetrack.config import REPO
from racetrack.errors import UsageError
from racetrack.report.publish import EngineName, gather, publish
from racetrack.report.standings import read_results, standings
from racetrack.results import folder as runfolder
from racetrack.results.published import MOST_BYTES
from tests.records import verified
from tests.report.folders import (
    ABSENT,
    RIGHT,
    SERVED,
    WRONG,
    PlannedRun,
    RunSpec,
    edit,
    experiment,
    run,
    search,
    window_at,
)
from tests.run_json import read_run

pytestmark = pytest.mark.slow

SCHEMA: dict[str, Any] = json.loads((REPO / "docs" / "result.schema.json").read_text())
# Synthetic runs record only the versions of the harness.
ENGINES = {
    "steady": EngineName("Steady Stream", "racetrack"),
    "swift": EngineName("Swift", "racetrack"),
}
COMMAND = "./race compare steady --plan my.toml"
MACHINE = {
    "cpu_model": "AMD EPYC(TM) Processor",
    "cpu_numbers": "family 26, model 2",
    "cores": 2,
    "memory_gib": 23.54,
}


def published(folder: Path, root: Path) -> dict[str, Any]:
    """Publish what is in a folder; return the only result."""
    (file,) = publish([folder], root, ENGINES)
    record: dict[str, Any] = json.loads(file.read_text())
    return record


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write one engine's runs, twice at two rates, two searches, and a run that lost events."""
    folder = tmp_path_factory.mktemp("logs")
    for seed in (1, 2):
        for rate in (1_000, 4_000):
            cpu_pct = 20 + rate / 100 + seed
            check = verified(users=RIGHT, items=RIGHT, hvu_test=ABSENT)
            run(folder, RunSpec(rate=rate, seed=seed, cpu_pct=cpu_pct, verified=check))
        search(folder, "steady", 50_000 + 1_000 * seed)
    run(folder, RunSpec(lost=1, cpu_pct=500))
    for path in folder.iterdir():
        if (path / "run.json").is_file():
            edit(path, machine=MACHINE)
    return folder


@pytest.fixture(scope="module")
def made(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Publish the runs; return the folder of results, and its file."""
    root = tmp_path_factory.mktemp("results")
    (file,) = publish([logs], root, ENGINES)
    return root, file


@pytest.fixture
def result(made: tuple[Path, Path]) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(made[1].read_text())
    return record


def test_a_result_is_small_valid_and_where_it_belongs(
    made: tuple[Path, Path], result: dict[str, Any]
) -> None:
    root, file = made
    version = result["versions"]["racetrack"]
    place = "shop/amd-epyc-family-26-model-2-2-cores-24-gib"
    assert file.relative_to(root).as_posix() == f"{place}/steady@{version}.json"
    assert file.stat().st_size < MOST_BYTES
    Draft202012Validator(SCHEMA).validate(result)


def test_windows_are_those_of_the_runs(logs: Path, result: dict[str, Any]) -> None:
    runs = {path.name: read_run(path) for path in logs.iterdir() if (path / "run.json").is_file()}
    at_rates = [window for window in result["windows"] if "per_s" in window]
    found = [(window["per_s"], window["repeat"]) for window in at_rates]
    assert found == [(1_000, 1), (4_000, 1), (1_000, 2), (4_000, 2)]
    for window in at_rates:
        actual = runs[window["tag"]]["results"]
        process = actual["processes"]["steadyd"]
        for key in ("cpu_mean_pct", "cpu_s_per_million"):
            assert window["figures"][key] == pytest.approx(process[key], rel=1e-4)
        lag = actual["verdict"]["measured"]
        assert window["figures"]["lag_p99_ms"] == pytest.approx(lag["lag_p99_ms"], rel=1e-4)
        assert "memory_gib" in window["figures"] and window["verdict"] == "kept up"


def test_searches_have_windows_at_saturation_but_none_of_their_trials(
    result: dict[str, Any],
) -> None:
    windows = [window for window in result["windows"] if window["experiment"]]
    capacities = [window["figures"].get("capacity_per_s") for window in windows]
    assert [per_s for per_s in capacities if per_s] == [51_000, 51_000, 52_000, 52_000]
    assert not any("per_s" in window for window in windows)
    found = [window for window in windows if "sustained_1s_per_s" in window["figures"]]
    assert [window["figures"]["sustained_1s_per_s"] for window in found] == [45_900, 46_800]
    assert all(window["at_least"] == ["sustained_5s_per_s"] for window in found)


def test_verified_and_absent_views_are_named(result: dict[str, Any]) -> None:
    views = result["views"]
    assert views["runs"] == 4
    assert set(views["right"]) == {"users", "items"}
    assert (views["wrong"], views["absent"]) == ([], ["hvu_test"])
    assert result["classes"] == SERVED.model_dump()


def test_a_view_that_was_wrong_once_is_wrong(tmp_path: Path) -> None:
    for found in (RIGHT, WRONG):
        run(tmp_path, RunSpec(verified=verified(users=found)))
    views = published(tmp_path, tmp_path / "results")["views"]
    assert views["wrong"] == ["users"] and views["right"] == []


@pytest.mark.skipif(not shutil.which("jq"), reason="no jq on PATH (Debian: apt-get install jq)")
def test_the_readme_prints_the_hash_of_the_raw_files(
    logs: Path, made: tuple[Path, Path], result: dict[str, Any], tmp_path: Path
) -> None:
    readme = (REPO / "results" / "README.md").read_text()
    (block,) = [of for of in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL) if "sha256sum" in of]
    commands = re.sub(r"^result=.*$", f"result={made[1]}", block, flags=re.MULTILINE)
    (tmp_path / "logs").symlink_to(logs)
    printed = subprocess.run(
        ["sh", "-c", commands], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert printed.stdout.split()[0] == result["raw"]["sha256"]


def test_commands_repeat_runs_and_searches_with_their_settings(
    result: dict[str, Any], tmp_path: Path
) -> None:
    options = "--settle 5s --samples 30 --decide-within 0s --verify"
    assert result["commands"] == [
        "./race limit steady",
        f"./race run steady --rate 1000 {options}",
        f"./race run steady --rate 4000 {options}",
    ]
    run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))
    changed = published(tmp_path, tmp_path / "results")
    assert changed["settings"] == {"kafka_heap": "8g"}
    assert changed["commands"][0].startswith("KAFKA_HEAP=8g ./race run steady --rate 4000 ")


def test_runs_of_other_settings_or_versions_are_refused(tmp_path: Path) -> None:
    run(tmp_path, RunSpec())
    other = run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))
    with pytest.raises(UsageError, match="KAFKA_HEAP is 1g and 8g"):
        publish([tmp_path], tmp_path / "results", ENGINES)
    edit(other, settings=read_run(tmp_path / min(tmp_path.iterdir()))["settings"])
    edit(other, versions={"racetrack": "0", "steady": "2"})
    with pytest.raises(UsageError, match="STEADY VERSION is 2 and not recorded"):
        publish([tmp_path], tmp_path / "results", ENGINES)


def test_the_retention_that_a_search_derives_is_no_difference(tmp_path: Path) -> None:
    run(tmp_path, RunSpec(settings={"KAFKA_RETENTION_BYTES": "700000000"}))
    run(tmp_path, RunSpec())
    result = published(tmp_path, tmp_path / "results")
    assert result["settings"] == {}
    assert len(result["windows"]) == 2


def compared(logs: Path, of_plan: dict[str, str] | None = None, **of_windows: Any) -> Path:
    """Write a comparison of an engine at two rates and at saturation, twice. `of_plan` are settings
    of its plan; `of_windows` are values of the windows of the second repeat."""
    spec = RunSpec(window_s=5.0)
    figures = values(runfolder.read_run(run(logs / "single", spec)))
    runs = []
    for repeat, changes in ((1, {}), (2, of_windows)):
        capacity = {"capacity_per_s": 50_000.0 + repeat}
        windows = (
            *(window_at(rate, figures=figures, **changes) for rate in (1_000, 4_000)),
            window_at(None, figures=capacity, **changes),
        )
        runs.append(PlannedRun(spec, windows, repeat, settings=of_plan or {}))
    command = f"{COMMAND} --json 'my file.json' --csv=of.csv"
    return experiment(logs, "my", runs, command, note="Brief windows.")


def test_a_comparison_brings_capacities_and_the_remarks_of_its_plan(tmp_path: Path) -> None:
    folder = compared(tmp_path / "logs", remark="not warm")
    result = published(folder, tmp_path / "results")
    assert [window.get("remark") for window in result["windows"]] == [None] * 3 + ["not warm"] * 3
    (standing,) = standings(read_results(tmp_path / "results"))
    capacity = standing.estimates["Steady Stream", "capacity_per_s", None]
    assert capacity.mean == pytest.approx(math.sqrt(50_001 * 50_002)) and capacity.n == 2
    assert result["commands"] == [COMMAND]
    assert result["caveats"][-1] == "Brief windows."
    assert len(result["raw"]["folders"]) == 3 and result["left_out"] == []


def test_a_share_of_what_a_scout_reached_is_a_rate(tmp_path: Path) -> None:
    spec = RunSpec(window_s=5.0)
    figures = values(runfolder.read_run(run(tmp_path / "single", spec)))
    windows = (
        window_at(20_000, share=0.5, figures=figures, name="50 % of what the scout reached"),
        window_at(None, figures={"capacity_per_s": 50_000.0}),
        window_at(25_000, share=0.5, figures=figures),
    )
    folder = experiment(tmp_path / "logs", "my", [PlannedRun(spec, windows)], COMMAND)
    found = published(folder, tmp_path / "results")["windows"]
    shares = {window["per_s"]: window.get("share") for window in found if "per_s" in window}
    assert shares == {20_000: None, 25_000: 0.5}


def test_repeats_that_were_not_made_are_mentioned(tmp_path: Path) -> None:
    later = PlannedRun(RunSpec(), repeat=2, outcome=None, begun=False)
    folder = experiment(tmp_path / "logs", "my", [PlannedRun(RunSpec()), later], COMMAND)
    result = published(folder, tmp_path / "results")
    assert "Repeats made by the plan my: 1 of 2." in result["caveats"]
    experiment(tmp_path / "logs", "my", [PlannedRun(RunSpec())], COMMAND)
    both = published(tmp_path / "logs", tmp_path / "results")
    assert not any("Repeats made" in caveat for caveat in both["caveats"])


def test_repeats_of_another_engine_do_not_count_for_one_that_lacks_some(tmp_path: Path) -> None:
    runs = [PlannedRun(RunSpec(name), repeat=n) for n in (1, 2) for name in ("steady", "swift")]
    runs[-1] = replace(runs[-1], outcome=None, begun=False)
    folder = experiment(tmp_path / "logs", "my", runs, COMMAND)
    files = publish([folder], tmp_path / "results", ENGINES)
    results = [json.loads(file.read_text()) for file in files]
    caveats = {result["engine"]: result["caveats"] for result in results}
    lacks = "Repeats made by the plan my: 1 of 2."
    assert lacks in caveats["swift"] and lacks not in caveats["steady"]


def test_the_newest_run_says_what_to_know_before_comparing(tmp_path: Path) -> None:
    words = ("As it was put before.", "As it is put now.")
    specs = [RunSpec(rate=500, caveats=(text,)) for text in words]
    runs = [PlannedRun(spec, repeat=repeat) for repeat, spec in enumerate(specs, start=1)]
    folder = experiment(tmp_path / "logs", "my", runs, COMMAND)
    assert published(folder, tmp_path / "results")["caveats"] == [words[1]]


@pytest.mark.parametrize("outcome", ["ok", "Void: a backup ran"])
def test_verified_runs_with_other_settings_count_for_answers_only(
    tmp_path: Path, outcome: str
) -> None:
    logs = tmp_path / "logs"
    compared(logs)
    check = verified(users=RIGHT, items=RIGHT)
    settings, caveats = {"UPDATES_PER_SECOND": "20"}, ("No view was read.",)
    spec = RunSpec(rate=500, verified=check, settings=settings, caveats=caveats)
    folder = run(logs, spec)
    edit(folder, outcome=outcome)
    result = published(logs, tmp_path / "results")
    assert folder.name in result["raw"]["folders"]
    assert "No view was read." not in result["caveats"]
    assert {window.get("per_s") for window in result["windows"]} == {1_000, 4_000, None}
    assert result["views"]["right"] == ["users", "items"]
    assert "updates_per_second" not in result["settings"]
    assert any("UPDATES_PER_SECOND=20 ./race run steady" in text for text in result["commands"])


def test_a_verified_run_is_of_the_variant_whose_settings_it_has(tmp_path: Path) -> None:
    logs, tuned = tmp_path / "logs", {"KAFKA_HEAP": "8g"}
    plain = PlannedRun(RunSpec())
    other = PlannedRun(RunSpec(settings=tuned), variant="steady@tuned", settings=tuned)
    experiment(logs, "my", [plain, other], COMMAND)
    check = verified(users=RIGHT, items=RIGHT)
    run(logs, RunSpec(verified=check, settings={"UPDATES_PER_SECOND": "20", **tuned}))
    checked = {}
    for file in publish([logs], tmp_path / "results", ENGINES):
        found = json.loads(file.read_text())
        checked[found["variant"]] = found["views"]["right"]
    assert checked == {"": [], "tuned": ["users", "items"]}


def test_a_tuned_variant_with_a_setting_is_named_by_both(tmp_path: Path) -> None:
    larger = {"KAFKA_HEAP": "8g"}
    planned = PlannedRun(RunSpec(settings=larger), variant="steady@tuned[KAFKA_HEAP=8g]")
    experiment(tmp_path / "logs", "my", [planned], COMMAND)
    (file,) = publish([tmp_path / "logs"], tmp_path / "results", ENGINES)
    assert json.loads(file.read_text())["variant"] == "tuned, KAFKA_HEAP=8g"


def test_settings_that_the_plan_gives_are_not_in_its_command(tmp_path: Path) -> None:
    folder = compared(tmp_path / "logs", {"KAFKA_HEAP": "8g", "WORKLOAD": "ads"})
    for path in (tmp_path / "logs").glob("*_run"):
        changed = {"kafka_heap": "8g", "jvm_options": "-Xss1m", "workload": "ads"}
        edit(path, settings={**read_run(path)["settings"], **changed})
    result = published(folder, tmp_path / "results")
    assert result["settings"] == changed
    assert result["commands"] == [f"JVM_OPTIONS=-Xss1m {COMMAND}"]


def test_void_windows_do_not_count(tmp_path: Path) -> None:
    void = compared(tmp_path / "void", outcome="Void: a backup ran")
    result = published(void, tmp_path / "results")
    assert len(result["windows"]) == 3
    assert len(result["left_out"]) == 3 and "a backup ran" in result["left_out"][0]


def test_changing_loads_do_not_count_and_of_a_run_with_faults_only_its_recovery(
    tmp_path: Path,
) -> None:
    check = verified(users=RIGHT, items=WRONG)
    run(tmp_path, RunSpec(arguments={"faults": ("kill:debezium@15s",)}, verified=check))
    run(tmp_path, RunSpec(arguments={"load": "spike 4k 8k 5s"}))
    (row,) = [row for material in gather(table.read([tmp_path])) for row in material.rows]
    recovery = {
        "rate_at_fault_events_per_s",
        "up_after_s",
        "normal_after_s",
        "lost_events",
        "counted_twice_events",
        "wrong_views",
    }
    assert row.load is None and set(row.values) == recovery
    result = published(tmp_path, tmp_path / "results")
    (window,) = result["windows"]
    assert set(window["figures"]) == set(row.values)
    assert result["views"]["runs"] == 0 and "items" in window["remark"]


def test_recoveries_may_have_other_settings_and_these_are_named(tmp_path: Path) -> None:
    run(tmp_path, RunSpec())
    faults = {"faults": ("kill:debezium@15s",)}
    run(tmp_path, RunSpec(arguments=faults, settings={"READS_PER_SECOND": "2"}))
    result = published(tmp_path, tmp_path / "results")
    assert [bool(window["window"]) for window in result["windows"]] == [False, True]
    assert result["caveats"][-1] == "READS_PER_SECOND was 2 in recoveries, otherwise 0."
    assert result["settings"] == {}


def test_places_have_files_of_their_own(tmp_path: Path) -> None:
    run(tmp_path, RunSpec(engine="swift"))
    edit(run(tmp_path, RunSpec()), data_in_memory=False)
    edit(run(tmp_path, RunSpec()), broker="Kafka elsewhere")
    files = publish([tmp_path], tmp_path / "results", ENGINES, variant="big heap")
    assert len({file.parent.name for file in files}) == len(files) == 3
    assert all(file.name.endswith("+big-heap.json") for file in files)


def test_a_file_that_is_not_where_it_belongs_is_refused(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "elsewhere.json").write_text(made[1].read_text())
    with pytest.raises(UsageError, match="move the file, or publish the result again"):
        read_results(tmp_path)
