"""Tests of results data from run folders: figures are those of the runs; unrelated runs are
refused."""

import hashlib
import json
import math
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from racetrack import plugins
from racetrack.analysis.comparison import LEAST_DEVIATION
from racetrack.config import REPO, heaps_of_engine
from racetrack.errors import UsageError
from racetrack.report.collect import collect
from racetrack.report.figures import format_significant
from racetrack.report.publish import EngineName, gather, publish
from racetrack.report.ranking import ranking_page, read_results, results_page
from racetrack.results.published import MOST_BYTES, schema
from racetrack.results.repeats import QUICK, ComparisonRecord, Piece
from racetrack.results.run import Window
from tests.records import verified
from tests.report.folders import ABSENT, RIGHT, WRONG, RunSpec, edit, run, search
from tests.run_json import read_run

pytestmark = pytest.mark.slow

SCHEMA: dict[str, Any] = json.loads((REPO / "docs" / "result.schema.json").read_text())
# Synthetic runs record only the versions of the harness.
ENGINES = {
    "steady": EngineName("Steady Stream", "racetrack"),
    "swift": EngineName("Swift", "racetrack"),
}
MACHINE = {
    "cpu_model": "AMD EPYC(TM) Processor",
    "cpu_numbers": "family 26, model 2",
    "cores": 2,
    "memory_gib": 23.54,
}


def published(root: Path) -> list[dict[str, Any]]:
    return [json.loads(result.as_text()) for result in read_results(root)]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write one engine's runs, twice at two rates, two searches, and a run that lost pageviews."""
    folder = tmp_path_factory.mktemp("logs")
    for seed in (1, 2):
        for rate in (1_000, 4_000):
            cpu_pct = 20 + rate / 100 + seed
            check = verified(users=RIGHT, items=RIGHT, hvu_test=ABSENT)
            run(folder, RunSpec(rate=rate, seed=seed, cpu_pct=cpu_pct, verified=check))
        search(folder, "steady", 50_000 + 1_000 * seed)
    run(folder, RunSpec(lost=1, cpu_pct=500))
    for path in folder.iterdir():
        for name in ("run.json", "limit.json"):
            if (path / name).is_file():
                record = json.loads((path / name).read_text())
                (path / name).write_text(json.dumps({**record, "machine": MACHINE}))
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


def test_the_schema_is_that_of_the_models() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert schema() == SCHEMA, "python -m racetrack.results.published > docs/result.schema.json"


def test_a_result_is_small_valid_and_where_it_belongs(
    made: tuple[Path, Path], result: dict[str, Any]
) -> None:
    root, file = made
    version = result["versions"]["racetrack"]
    place = "shop/amd-epyc-family-26-model-2-2-cores-24-gib"
    assert file.relative_to(root).as_posix() == f"{place}/steady@{version}.json"
    assert file.stat().st_size < MOST_BYTES
    Draft202012Validator(SCHEMA).validate(result)


def test_figures_are_means_over_the_runs_with_their_intervals(
    logs: Path, result: dict[str, Any]
) -> None:
    """Two repeats at two rates: t(0.975, 2 degrees of freedom) = 4.3027."""
    runs = [read_run(path) for path in logs.iterdir() if (path / "run.json").is_file()]
    logarithms = {
        at_rate["per_s"]: [
            math.log(actual["results"]["processes"]["steadyd"]["cpu_mean_pct"])
            for actual in runs
            if actual["outcome"] == "ok"
            and actual.get("results")
            and actual["arguments"]["pageviews_per_s"] == at_rate["per_s"]
        ]
        for at_rate in result["rates"]
    }
    assert {rate: len(of) for rate, of in logarithms.items()} == {1_000: 2, 4_000: 2}
    variance = statistics.fmean(statistics.variance(of) for of in logarithms.values())
    half = 4.3027 * max(math.sqrt(variance), LEAST_DEVIATION) / math.sqrt(2)
    for at_rate in result["rates"]:
        mean, found = statistics.fmean(logarithms[at_rate["per_s"]]), at_rate["cpu_mean_pct"]
        assert (found["n"], found["freedom"], at_rate["verdicts"]) == (2, 2, {"kept up": 2})
        ends = [math.exp(mean + by) for by in (0, -half, half)]
        assert [found["mean"], found["low"], found["high"]] == pytest.approx(ends, rel=1e-3)
    assert "memory_max_gib" not in result["rates"][0]  # synthetic runs measure no PSS


def test_capacity_is_the_mean_of_the_searches(result: dict[str, Any]) -> None:
    """Two searches: t(0.975, 1 degree of freedom) = 12.706."""
    mean = math.sqrt(51_000 * 52_000)
    factor = math.exp(12.7062 * math.log(52 / 51) / 2)
    capacity = result["capacity"]
    assert (capacity["n"], capacity["is_lower_bound"]) == (2, False)
    ends = [mean, mean / factor, mean * factor]
    assert [capacity[key] for key in ("mean", "low", "high")] == pytest.approx(ends, rel=1e-3)
    assert [of["bound_ms"] for of in result["sustained"]] == [2_000, 5_000]
    assert result["sustained"][0]["sustained_per_s"]["mean"] == pytest.approx(0.9 * mean, rel=1e-3)
    assert result["sustained"][0]["failed_per_s"] == round(0.95 * 51_000)


def test_cpu_is_split_into_base_and_work(result: dict[str, Any]) -> None:
    """The synthetic CPU use is 20 % of a core plus the seed (21.5 % on average), and 1 % of a core
    more for each 100 pageviews/s, which is 100 CPU-s per million."""
    line = result["cpu_line"]
    assert line["base_pct"]["low"] <= 21.5 <= line["base_pct"]["high"]
    assert line["s_per_million"]["low"] <= 100 <= line["s_per_million"]["high"]


def test_what_does_not_count_is_named(logs: Path, result: dict[str, Any]) -> None:
    (left_out,) = result["left_out"]
    assert "published pageviews differ" in left_out


def test_verified_and_absent_views_are_named(result: dict[str, Any]) -> None:
    views = result["views"]
    assert views["runs"] == 4
    assert set(views["right"]) == {"users", "items"}
    assert (views["wrong"], views["absent"]) == ([], ["hvu_test"])
    assert result["guarantee"] == "exactly once"


def test_a_view_that_was_wrong_once_is_wrong(tmp_path: Path) -> None:
    for found in (RIGHT, WRONG):
        run(tmp_path, RunSpec(verified=verified(users=found)))
    publish([tmp_path], tmp_path / "results", ENGINES)
    (result,) = published(tmp_path / "results")
    assert result["views"]["wrong"] == ["users"] and result["views"]["right"] == []


def test_the_hash_is_that_of_the_shells_sha256sum(logs: Path, result: dict[str, Any]) -> None:
    names = sorted(
        f"{path.parent.name}/{path.name}"
        for folder in result["raw"]["folders"]
        for path in (logs / folder).iterdir()
        if path.suffix == ".csv"
        or path.name in ("run.json", "limit.json", "top_samples.log")
        or path.name.endswith("_sample_dt.log")
    )
    listed = subprocess.run(["sha256sum", *names], cwd=logs, capture_output=True, check=True)
    assert result["raw"]["sha256"] == hashlib.sha256(listed.stdout).hexdigest()
    assert result["raw"]["files"] == len(names)


def test_the_command_repeats_rates_repeats_and_settings(
    result: dict[str, Any], tmp_path: Path
) -> None:
    sweep, limit = result["commands"]
    assert sweep == (
        "./race sweep steady --rates 1000,4000 --repeat 2 --settle 5s --samples 30"
        " --decide-within 0s --verify"
    )
    assert limit == (
        "./race limit steady --repeat 2 --start 1000 --warm-up 120s --bound 2000ms --bound 5000ms"
        " --within 900s"
    )
    run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))
    publish([tmp_path], tmp_path / "results", ENGINES)
    (changed,) = published(tmp_path / "results")
    assert changed["settings"] == {"kafka_heap": "8g"}
    assert changed["commands"][0].startswith("KAFKA_HEAP=8g ./race sweep steady --rates 4000 ")


def test_runs_of_other_settings_or_versions_are_refused(tmp_path: Path) -> None:
    run(tmp_path, RunSpec())
    other = run(tmp_path, RunSpec(settings={"KAFKA_HEAP": "8g"}))
    with pytest.raises(UsageError, match="KAFKA_HEAP is 1g and 8g"):
        publish([tmp_path], tmp_path / "results", ENGINES)
    edit(other, settings=read_run(tmp_path / min(tmp_path.iterdir()))["settings"])
    edit(other, versions={"racetrack": "0"})
    with pytest.raises(UsageError, match="differ in versions: racetrack is"):
        publish([tmp_path], tmp_path / "results", ENGINES)


def test_the_retention_that_a_search_derives_is_no_difference(tmp_path: Path) -> None:
    run(tmp_path, RunSpec(settings={"KAFKA_RETENTION_BYTES": "700000000"}))
    run(tmp_path, RunSpec())
    publish([tmp_path], tmp_path / "results", ENGINES)
    (result,) = published(tmp_path / "results")
    assert result["settings"] == {}
    assert result["rates"][0]["cpu_mean_pct"]["n"] == 2


def test_a_search_without_its_raw_data_is_refused(tmp_path: Path) -> None:
    path = search(tmp_path, "steady", 1_000)
    path.rename(tmp_path / "alone")
    for folder in tmp_path.glob("*_run"):
        folder.rename(tmp_path.parent / f"{tmp_path.name}-{folder.name}")
    with pytest.raises(UsageError, match="has no raw data"):
        publish([tmp_path / "alone"], tmp_path / "results", ENGINES)


def compared(logs: Path, engine: str = "steady", **of_pieces: Any) -> Path:
    """Write a comparison of one engine at two rates and at saturation, twice. `of_pieces` are
    values of the pieces in the second repeat."""
    logs.mkdir(exist_ok=True)
    pieces = []
    for repeat in (1, 2):
        path = run(logs, RunSpec(engine=engine, window_s=5.0))
        run_record = read_run(path)
        window = Window.model_validate(run_record["measured"]["window"])
        figures = dict(collect([path]).runs[0].figures)
        del run_record["results"]
        (path / "run.json").write_text(json.dumps(run_record))
        for rate in (1_000, 4_000, None):
            pieces.append(
                Piece(
                    engine=engine,
                    repeat=repeat,
                    pageviews_per_s=rate,
                    tag=path.name,
                    window=window,
                    verdict="kept up" if rate else "none",
                    figures=figures if rate else {"capacity_per_s": 50_000.0 + repeat},
                    **(of_pieces if repeat == 2 else {}),
                )
            )
    record = ComparisonRecord(
        engines=(engine, "swift"),
        rates=(1_000, 4_000),
        repeats=2,
        is_quick=True,
        reads_per_s=2,
        seed=1,
        pieces=tuple(pieces),
    )
    folder = logs / "2026.03.22.08.00.00_UTC_compare"
    folder.mkdir()
    (folder / "comparison.json").write_text(record.model_dump_json())
    return folder


@pytest.mark.parametrize("is_folder_of_all", [False, True])
def test_a_comparison_brings_rates_and_capacities(tmp_path: Path, is_folder_of_all: bool) -> None:
    folder = compared(tmp_path / "logs")
    named = folder.parent if is_folder_of_all else folder
    (file,) = publish([named], tmp_path / "results", ENGINES)
    result = json.loads(file.read_text())
    assert [(of["per_s"], of["cpu_mean_pct"]["n"]) for of in result["rates"]] == [
        (1_000, 2),
        (4_000, 2),
    ]
    lag_ms = {at["share"]: at["lag_ms"] for at in result["rates"][0]["lag_distribution"]}
    assert RunSpec().delay_ms < lag_ms[0.5] < lag_ms[0.99] < RunSpec().delay_ms + 1_500
    assert (result["capacity"]["mean"], result["capacity"]["n"]) == (50_001, 2)
    assert result["commands"] == [
        "./race compare steady swift --quick --rates 1000,4000 --repeats 2"
    ]
    assert len(result["raw"]["folders"]) == 3 and result["left_out"] == []
    assert QUICK in result["caveats"]
    page = results_page(read_results(tmp_path / "results"), "results")
    assert page.count(f"- Steady Stream: {QUICK}") == 1


WITH_HEAP, HEAP = next(
    (engine, heap.upper())
    for engine in plugins.engine_names()
    for heap in heaps_of_engine(engine)
    if heap.endswith("_heap")
)


@pytest.mark.parametrize(
    ("engine", "sized", "rule", "says"),
    [
        (
            WITH_HEAP,
            {HEAP: "7936m"},
            f"Heaps are a third: OTHER_HEAP=7936m, {HEAP}=7936m",
            f"Heaps are a third ({HEAP}=7936m).",
        ),
        (WITH_HEAP, {}, f"set by the user: {HEAP}", f"The user set {HEAP}=5g."),
        (WITH_HEAP, {}, "", None),
        ("steady", {}, "Heaps are a third: OTHER_HEAP=7936m", "It has no heap."),
    ],
)
def test_a_result_has_the_rule_by_which_its_heap_was_sized(
    tmp_path: Path, engine: str, sized: dict[str, str], rule: str, says: str | None
) -> None:
    folder = compared(tmp_path / "logs", engine)
    for path in (tmp_path / "logs").glob("*_run"):
        edit(path, settings={**read_run(path)["settings"], HEAP.lower(): "5g"})
    record = json.loads((folder / "comparison.json").read_text())
    record |= {"settings": {engine: sized}, "heap_rule": rule}
    (folder / "comparison.json").write_text(json.dumps(record))
    publish([folder], tmp_path / "results", {engine: EngineName("Steady", "racetrack")})
    (result,) = published(tmp_path / "results")
    assert result.get("heap_rule") == says
    Draft202012Validator(SCHEMA).validate(result)
    page = results_page(read_results(tmp_path / "results"), "results")
    assert (f"- Steady: {says}\n" in page) == (says is not None)


def test_settings_that_a_comparison_makes_itself_are_not_in_its_command(tmp_path: Path) -> None:
    folder = compared(tmp_path / "logs")
    for path in (tmp_path / "logs").glob("*_run"):
        changed = {"kafka_heap": "8g", "connect_heap": "1g", "workload": "ads"}
        edit(path, settings={**read_run(path)["settings"], **changed})
    record = json.loads((folder / "comparison.json").read_text())
    record |= {"workload": "ads", "settings": {"steady": {"KAFKA_HEAP": "8g", "WORKLOAD": "ads"}}}
    (folder / "comparison.json").write_text(json.dumps(record))
    publish([folder], tmp_path / "results", ENGINES)
    (result,) = published(tmp_path / "results")
    assert result["settings"] == changed
    (command,) = result["commands"]
    assert command.startswith("CONNECT_HEAP=1g ./race compare steady swift")
    assert command.endswith("--workload ads")


def test_void_pieces_do_not_count(tmp_path: Path) -> None:
    void = compared(tmp_path / "void", outcome="Void: a backup ran")
    publish([void], tmp_path / "results", ENGINES)
    (result,) = published(tmp_path / "results")
    assert result["rates"][0]["cpu_mean_pct"]["n"] == 1 == result["capacity"]["n"]
    assert len(result["left_out"]) == 3 and "a backup ran" in result["left_out"][0]


def test_a_capacity_is_a_lower_bound_if_that_of_any_repeat_is(tmp_path: Path) -> None:
    at_least = compared(tmp_path / "logs", is_lower_bound=True)
    publish([at_least], tmp_path / "results", ENGINES)
    results = read_results(tmp_path / "results")
    capacity = results[0].capacity
    assert capacity and (capacity.n, capacity.mean) == (2, 50_001) and capacity.is_lower_bound
    assert results[0].left_out == ()
    assert "| at least 50,0" in results_page(results, "results")


def test_faults_changing_loads_and_idle_runs_do_not_count(tmp_path: Path) -> None:
    run(tmp_path, RunSpec(arguments={"faults": ("kill:debezium@15s",)}))
    run(tmp_path, RunSpec(arguments={"load": "spike 4k 8k 5s"}))
    assert gather(collect([tmp_path])) == []
    with pytest.raises(UsageError, match="nothing to publish"):
        publish([tmp_path], tmp_path / "results", ENGINES)


def test_places_have_files_of_their_own(tmp_path: Path) -> None:
    run(tmp_path, RunSpec())
    run(tmp_path, RunSpec(runtime="compose"))
    run(tmp_path, RunSpec(engine="swift"))
    edit(run(tmp_path, RunSpec()), data_in_memory=False)
    files = publish([tmp_path], tmp_path / "results", ENGINES, variant="big heap")
    places = {file.parent.name for file in files}
    assert len(files) == 4 and len(places) == 3
    assert {file.name.partition("@")[0] for file in files} == {"steady", "swift"}
    assert all(file.name.endswith("+big-heap.json") for file in files)


def test_a_file_that_is_not_where_it_belongs_is_refused(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "elsewhere.json").write_text(made[1].read_text())
    with pytest.raises(UsageError, match="move the file, or publish the result again"):
        read_results(tmp_path)


def test_the_committed_pages_are_those_of_the_committed_results() -> None:
    results = read_results(REPO / "results")
    pages = {
        "index.html": ranking_page(results),
        "results.md": results_page(results, "../results"),
    }
    for name, text in pages.items():
        assert (REPO / "docs" / name).read_text() == text + "\n", "./race publish"


def test_a_table_has_the_figures_with_their_intervals(
    made: tuple[Path, Path], result: dict[str, Any]
) -> None:
    root, file = made
    page = results_page(read_results(root), "results")
    assert f"](results/{file.relative_to(root).as_posix()})" in page
    assert "\n## shop: AMD EPYC(TM) Processor (family 26, model 2), 2 cores, 24 GiB\n" in page
    shown = [format_significant(result["capacity"][key]) for key in ("mean", "low", "high")]
    assert "| {} ({} to {}) |".format(*shown) in page
    assert " views right |" in page
    assert "At 1,000 events/s:" in page and "At 4,000 events/s:" in page
    assert "the script does not create hvu_test" in page
