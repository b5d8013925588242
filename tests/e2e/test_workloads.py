"""End-to-end tests of every workload except the default one, which all other tests use:
verification with each engine that runs natively."""

import pytest
from confluent_kafka import Producer

from racetrack import plugins
from racetrack.config import load
from racetrack.engines import all_engines, find_engine
from racetrack.engines.shared.tests.nexmark_topic import INVALID
from racetrack.workloads.contract import find_workload, workload_in
from tests.e2e.shared import Door, ended_well
from tests.some_engines import CALIBRATION, EXAMPLE

OTHERS = [name for name in plugins.workload_names() if name != plugins.default_workload()]
RACED = [
    (workload, engine.name)
    for workload in OTHERS
    for engine in all_engines()
    if "native" in engine.runtimes and workload in engine.scripts
]


# Settings of a workload with a selection: a view that the calibration engine can write.
CALIBRATED = {"nexmark": {"NEXMARK_QUERIES": "q1"}}


def selection(workload: str, engine: str) -> dict[str, str]:
    """Return settings for reads and, if the workload has a selection, for its views: one that is
    read; or all that the engine has, if none of them is read."""
    harness, reads = find_workload(workload), {"READS_PER_SECOND": "2"}
    if not harness.selected_by:
        return reads
    having = harness.with_scripts(find_engine(engine).script_ending)
    read = [query.view for query in harness.queries if query.view in having]
    selected = {harness.selected_by.upper(): ",".join(read[:1] or having)}
    return {**selected, **(reads if read else {})}


@pytest.mark.parametrize(("workload", "engine"), RACED)
def test_every_view_is_right_and_can_be_read(
    workload: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are updates in mid-run, if the workload has any, and of one engine also skewed and late
    events, which count in the windows of their times."""
    selected_settings = selection(workload, engine)
    for name, value in selected_settings.items():
        monkeypatch.setenv(name, value)
    has_updates = "updates_per_second" in find_workload(workload).rates
    monkeypatch.setenv("UPDATES_PER_SECOND", "2" if has_updates else "0")
    is_skewed = (workload, engine) == ("ads", EXAMPLE)
    if is_skewed:
        monkeypatch.setenv("ADS_WITH_SKEW", "true")
    rate = "5000" if is_skewed else "2000"
    arguments = (engine, rate, "10", "10", "1.0", "--verify", "--workload", workload)
    door = Door("run_experiment.sh", *arguments)
    run = ended_well(door)
    assert run["settings"]["workload"] == workload
    assert not is_skewed or run["settings"]["ads_with_skew"] is True
    views = run["verified"]["views"]
    selected = workload_in(load({"WORKLOAD": workload}))
    expected = {view.name: "right" for view in selected.views}
    assert {name: found["status"] for name, found in views.items()} == expected, door.output
    assert all(found["compared"] > 0 for found in views.values())
    ignored = find_engine(engine).ignores_updates_of if has_updates else ()
    assert run["verified"]["first_rows_of"] == list(ignored)
    results = run["results"]
    assert results["processed_events"] == results["published_events"] > 20_000
    assert bool(results["reads"]) is ("READS_PER_SECOND" in selected_settings)
    assert not any(read["errors"] for read in results["reads"])


@pytest.mark.parametrize("workload", [name for name, engine in RACED if engine == EXAMPLE])
def test_a_killed_engine_counts_all_of_it_again(workload: str) -> None:
    arguments = (EXAMPLE, "1000", "8", "15", "1.0", "--verify", "--workload", workload)
    door = Door("run_experiment.sh", *arguments, "--fault", "kill:engine@8s")
    door.wait(400)
    run = door.record()
    views = run["verified"]["views"].values()
    assert {found["status"] for found in views} == {"right"}, door.output


@pytest.mark.parametrize("workload", OTHERS)
def test_its_events_are_counted_when_they_are_due(
    workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calibration engine computes the delay from the due time in each message."""
    for name, value in CALIBRATED.get(workload, {}).items():
        monkeypatch.setenv(name, value)
    arguments = (CALIBRATION, "3000", "4", "10", "1.0", "--workload", workload)
    run = ended_well(Door("run_experiment.sh", *arguments))
    assert run["results"]["processed_events"] == run["results"]["published_events"]
    assert 0 <= run["results"]["dt_ms"]["p50"] < 1_000
    started = run["results"]["processes"].keys()
    assert {"broker", "loadgen"} <= started
    if not find_workload(workload).tables:
        assert not {"mysql", "registry", "debezium"} & started


@pytest.mark.parametrize("engine", [name for workload, name in RACED if workload == "nexmark"])
def test_no_engine_dies_of_messages_that_are_no_events(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_QUERIES", "q17")
    door = Door(
        "run_experiment.sh", engine, "2000", "15", "5", "1.0", "--verify", "--workload", "nexmark"
    )
    door.until(r"^\[4/")
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{load().kafka_port}"})
    for text in INVALID:
        producer.produce("nexmark", text, partition=0)
    assert producer.flush(10) == 0
    assert door.wait(400) == 1, door.output
    verified = door.record()["verified"]
    assert {name: found["status"] for name, found in verified["views"].items()} == {"q17": "right"}
    assert verified["unfit"]["nexmark"]["count"] == len(INVALID)
