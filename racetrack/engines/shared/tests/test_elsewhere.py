"""Tests of engines that run outside the stack: some of their services are started nevertheless, and
their cost is unknown; and of properties that are passed on to engines."""

import pytest

from racetrack.config import load
from racetrack.engines import find_engine
from racetrack.engines.shared.tests.fakes import stack
from racetrack.errors import UsageError
from racetrack.run import checks, faults


@pytest.mark.parametrize(
    ("name", "setting", "url", "started"),
    [
        ("dh", "DEEPHAVEN_URL", "https://localhost:1", ()),
        ("flink", "FLINK_GATEWAY_URL", "http://127.0.0.1:1", ()),
        ("mz", "MZ_URL", "postgres://me@127.0.0.1:1/materialize", ()),
        ("pg", "POSTGRES_URL", "postgres://me@127.0.0.1:1/shop", ("pgfeed",)),
        ("spark", "SPARK_MASTER_URL", "spark://127.0.0.1:1", ("spark",)),
    ],
)
def test_its_cost_is_unknown(name: str, setting: str, url: str, started: tuple[str, ...]) -> None:
    engine, own = find_engine(name), stack(**{setting: url})
    assert set(engine.services) <= set(checks.needed_services(engine, own.settings))
    services = checks.services_of(engine, own.settings)
    assert tuple(each for each in services if each in engine.services) == started
    assert engine.processes(own) == {}
    (blank,) = checks.caveats_of_elsewhere(engine, own)
    assert f"it ran at {setting}" in blank and "so they are blank" in blank
    with pytest.raises(UsageError, match="runs outside the stack"):
        faults.services_hit(faults.parse(f"kill:{name}@1s"), engine, own.settings)


@pytest.mark.parametrize(
    ("engine", "words", "named"),
    [
        ("kstreams", "a.b=1 a.b=2", "a.b"),
        ("kstreams", "num.stream.threads=2 commit.interval.ms=9", "KSTREAMS_COMMIT_MS"),
        ("spark", "spark.scheduler.mode=FAIR spark.master=local", "SPARK_MASTER_URL"),
        ("flink", "pipeline.object-reuse", "pipeline.object-reuse"),
        ("pathway", "PATHWAY_IGNORE_ASSERTS=1 PATHWAY_THREADS=2", "PATHWAY_THREADS"),
        ("pathway", "LD_PRELOAD=/tmp/a.so", "LD_PRELOAD"),
        ("storm", "topology.debug=true topology.acker.executors=2", "STORM_GUARANTEE"),
        ("storm", "storm.zookeeper.port=1", "storm.zookeeper.port"),
    ],
)
def test_properties_that_can_not_be_set_are_named(engine: str, words: str, named: str) -> None:
    setting = f"{engine.upper()}_PROPERTIES"
    with pytest.raises(UsageError, match=f"{setting}.*{named}"):
        load({setting: words})
    prefix = {"storm": "topology.", "pathway": "PATHWAY_"}.get(engine, "spark.")
    load({setting: f"{prefix}scheduler.mode=FAIR {prefix}a='b c'"})
