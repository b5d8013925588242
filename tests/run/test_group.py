"""Tests of several engines on one input: valid groups, and data kept apart."""

from pathlib import Path

import pytest

from racetrack import engines
from racetrack.analysis import curves, outcome, raw
from racetrack.config import load
from racetrack.engines.group import EngineGroup
from racetrack.errors import UsageError
from racetrack.probes.base import CurvesFile
from racetrack.results.folder import RunFolder, engine_folders, read_run
from racetrack.run import faults
from racetrack.run.checks import services_of
from tests.run.fakes import FakeEngine, FakeStack, SecondEngine


def test_a_group_is_found_by_joined_names_and_needs_the_union_of_what_its_members_need() -> None:
    found = engines.find_engine("dh+pg")
    assert (found.name, found.title) == ("dh+pg", "Deephaven and PostgreSQL")
    assert [each.name for each in found.members] == ["dh", "pg"]
    group = EngineGroup([FakeEngine(), SecondEngine(needs=("debezium", "registry"))])
    needed = ["mysql", "broker", "loadgen", "debezium", "registry"]
    assert services_of(group, load()) == [*needed, "manager", "worker", "other"]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("dh+dh", "dh is named twice"),
        ("cal+mz", "have no common runtime .*native.*compose"),
        ("apex+storm", "both use the keys of the original benchmark in Redis"),
    ],
)
def test_engines_that_can_not_share_an_input_are_refused(names: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        engines.find_engine(names)


def test_engines_that_could_not_read_back_their_topic_are_refused() -> None:
    stack = FakeStack(load({"WORKLOAD": "shop"})).as_stack()
    engines.find_engine("kstreams+spark").check(stack)
    with pytest.raises(UsageError, match=r"high_value_users_sink .*\(Deephaven: Avro, Kafka St"):
        engines.find_engine("dh+kstreams").check(stack)
    ads = FakeStack(load({"WORKLOAD": "ads"})).as_stack()
    engines.find_engine("dh+kstreams").check(ads)


def test_a_fault_names_one_engine_of_a_group() -> None:
    group, settings = engines.find_engine("dh+pg"), load()
    services = faults.services_hit(faults.parse("kill:pg@1s"), group, settings)
    assert services == ("postgres", "pgfeed")
    for text, why in (("engine", "Name one of dh, pg"), ("flink", "has no engine flink")):
        with pytest.raises(UsageError, match=why):
            faults.services_hit(faults.parse(f"kill:{text}@1s"), group, settings)


def test_each_engine_has_its_own_record_and_the_run_has_the_result_of_each(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "one+two", "5000")
    with folder.recording() as run:
        run.runtime, run.versions = "native", {"broker": "4"}
    with folder.recording_of("one") as run:
        run.outcome, run.caveats = "ok", ("only of one",)
    with folder.recording() as run:
        run.outcome = "two: it ended"
    one, two = (read_run(path) for path in engine_folders(folder.path))
    assert (one.engine, one.beside, one.outcome) == ("one", ("two",), "ok")
    assert (two.engine, two.beside, two.outcome) == ("two", ("one",), "two: it ended")
    assert one.versions == two.versions == {"broker": "4"}
    assert (one.caveats, two.caveats) == (("only of one",), ())
    assert one.run_id != two.run_id
    assert one.tag == f"{folder.tag}/one"
    alone = RunFolder.create(tmp_path, "one", "5000")
    assert alone.of("one") is alone and engine_folders(alone.path) == [alone.path]
    whole = read_run(folder.path)
    assert [each.engine for each in whole.engines] == ["one", "two"]
    assert [each.outcome for each in whole.engines] == ["ok", "two: it ended"]


def test_shared_files_are_found_from_the_folder_of_each_engine(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "one+two", "5000")
    shared = CurvesFile(folder)
    for name in curves.SAMPLED:
        shared.write(1, name, [(0, 10), (1, 20)])
    for engine, count in (("one", 5), ("two", 7)):
        own = CurvesFile(folder.of(engine))
        own.write(2, "processed", [(0, count)])
        own.close()
    shared.close()
    (folder.path / "arrivals.csv").write_text("at_ms,due,handed_over\n1,30,30\n")
    for path, count in zip(engine_folders(folder.path), (5, 7), strict=True):
        found = curves.read(path)
        assert found.due[1].count.tolist() == [20]
        assert found.processed[0].count.tolist() == [count]
        assert [arrival.due for arrival in raw.arrivals(path)] == [30]


@pytest.mark.parametrize(
    ("outcomes", "text", "code"),
    [
        ({"dh": "ok", "pg": "ok"}, "ok", 0),
        ({"dh": "ok", "pg": "It hangs"}, "pg: It hangs", 1),
        ({"dh": "Void: x.", "pg": "Void: x."}, "dh: Void: x.; pg: Void: x.", 5),
    ],
)
def test_a_run_is_ok_if_all_of_its_engines_are(
    outcomes: dict[str, str], text: str, code: int
) -> None:
    assert outcome.joined(outcomes) == text
    assert outcome.exit_code(*outcomes.values()) == code
