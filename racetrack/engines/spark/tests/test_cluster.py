"""Tests of the addresses and sizes of Spark's processes when each is in its own pod, and of the
properties that can be set."""

from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.engines.spark.services import sparkmaster
from racetrack.engines.spark.settings import SparkSettings
from racetrack.errors import UsageError
from racetrack.stack.service import Context, find_service


@pytest.fixture
def context(tmp_path: Path) -> Context:
    part, work = tmp_path / "spark", tmp_path / "work"
    (part / "lib").mkdir(parents=True)
    work.mkdir()
    settings = load(
        {
            "BIND_ADDRESS": "0.0.0.0",  # noqa: S104
            "ENGINE_REPLICAS": "2",
            "SPARK_CORES": "3",
            "SPARK_HEAP": "5g",
            "PEER_SPARK_MASTER": "boss",
        }
    )
    return Context(settings, work, {"spark": part})


def test_a_worker_has_the_sizes_of_the_settings(context: Context) -> None:
    argv = " ".join(find_service("sparkworker").launch(context).argv)
    assert "--memory 5g --cores 3 spark://boss:7077" in argv


@pytest.mark.parametrize("name", ["sparkmaster", "sparkworker"])
def test_executors_find_their_classes(name: str, context: Context) -> None:
    service = find_service(name)
    service.launch(context)
    home = Path(service.launch(context).env["SPARK_HOME"])  # also when it is started again
    assert (home / "jars").resolve() == context.parts["spark"] / "lib"


def test_the_program_waits_for_all_executors_and_leaves_state_where_it_is(context: Context) -> None:
    settings = SparkSettings.of(context.settings)
    found = sparkmaster.of_driver(settings, context.parts["spark"], cores=6)
    assert found["spark.master"] == "spark://boss:7077"
    assert found["spark.executor.memory"] == "5g"
    assert (found["spark.cores.max"], found["spark.scheduler.minRegisteredResourcesRatio"]) == (
        6,
        1,
    )
    assert found["spark.locality.wait"] == "1d"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("spark.scheduler.mode", "spark.scheduler.mode"),
        ("scheduler.mode=FAIR", "scheduler.mode"),
        ("spark.scheduler.mode=FAIR spark.master=local", "SPARK_MASTER_URL"),
    ],
)
def test_properties_that_can_not_be_set_are_named(words: str, named: str) -> None:
    with pytest.raises(UsageError, match=f"SPARK_PROPERTIES.*{named}"):
        load({"SPARK_PROPERTIES": words})
    load({"SPARK_PROPERTIES": "spark.scheduler.mode=FAIR spark.a='b c'"})
