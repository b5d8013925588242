"""Tests that a run's probes depend on the settings and on the engine, and that every service is
sampled once and by its own name, the engine's processes as the engine's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from racetrack.analysis import raw
from racetrack.config import load
from racetrack.engines.contract import Engine
from racetrack.probes.base import no_outage
from racetrack.probes.loadgen import ArrivalsProbe
from racetrack.probes.usage import Meter
from racetrack.results.folder import RunFolder
from racetrack.run import engine_run
from racetrack.stack.containers import called, shown
from racetrack.stack.contract import Accounting, Stack
from tests.run.fakes import FakeEngine, FakeStack
from tests.waiting import wait_until

WITH_REGISTRY = FakeEngine(needs=("registry", "debezium"))


class Account:
    """A fake account of a service that is never read."""


class Contained(FakeStack):
    """A fake stack of containers. Its broker is also the registry, and all its containers but one
    have accounts of CPU time and memory."""

    def apart(self, services: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(shown(called(service)) for service in services))

    def accounting(self, service: str) -> Accounting | None:  # type: ignore[override]
        return None if service == "mysql" else cast(Accounting, Account())


class Elsewhere(FakeEngine):
    """An engine that starts nothing, and names a process of this machine as its own."""

    services = ()

    def processes(self, stack: Stack) -> Mapping[str, list[int]]:
        return {"far": [7]}


def test_every_service_is_sampled_the_engines_first() -> None:
    names = list(engine_run.processes(WITH_REGISTRY, FakeStack().as_stack()))
    assert names == ["manager", "worker", "broker", "loadgen", "mysql", "registry", "debezium"]


def test_where_the_broker_is_the_registry_it_is_sampled_once() -> None:
    names = list(engine_run.processes(WITH_REGISTRY, Contained(runtime="compose").as_stack()))
    assert names == ["manager", "worker", "broker", "loadgen", "mysql", "debezium"]


def test_an_engine_that_runs_elsewhere_has_the_processes_that_it_names() -> None:
    found = engine_run.processes(Elsewhere(), FakeStack().as_stack())
    assert found["far"] == [7]
    assert list(found) == ["far", "broker", "loadgen", "mysql", "debezium"]


def test_where_the_engines_processes_are_not_known_foreign_cpu_is_unknown(
    tmp_path: Path,
) -> None:
    class Unknown(Elsewhere):
        """An engine that names no process."""

        def processes(self, stack: Stack) -> Mapping[str, list[int]]:
            return {}

    def row(engine: FakeEngine) -> raw.NoiseRow:
        stack = FakeStack().as_stack()
        meter = Meter(lambda: engine_run.processes(engine, stack))
        folder = RunFolder.create(tmp_path, engine.name, "5")
        *_, probe = engine_run.usage_probes(engine, stack, meter, folder, 0.1)
        probe.start()
        noise = folder.path / "noise.csv"
        wait_until(lambda: noise.read_text().count("\n") >= 2, "row")
        probe.stop()
        return raw.noise(folder.path)[0]

    assert row(FakeEngine()).services_s is not None
    assert row(Unknown()).services_s is None


WITH_CDC, NO_CDC = FakeEngine(), FakeEngine(needs=())


def names(
    folder: Path,
    engine: Engine = WITH_CDC,
    settings: Mapping[str, str] | None = None,
    *,
    has_faults: bool = False,
) -> list[str]:
    """Return the names of the classes of a run's probes."""
    stack, run = (
        FakeStack(load(settings)).as_stack(),
        RunFolder.create(folder, engine.name, "100"),
    )
    changes = engine_run.changes_probe(
        engine, stack, run, cast(ArrivalsProbe, None), no_outage, has_faults=has_faults
    )
    found = [*engine_run.engine_probes(engine, stack, run, no_outage, {}), changes]
    return [type(probe).__name__ for probe in found if probe]


@pytest.mark.parametrize(
    ("settings", "engine", "has_faults", "expected"),
    [
        ({}, WITH_CDC, False, []),
        ({"TRACER_EVENTS_PER_SECOND": "12"}, WITH_CDC, False, ["ViewsProbe", "PurchasesProbe"]),
        ({"READS_PER_SECOND": "2"}, WITH_CDC, False, ["ReadsProbe"]),
        ({}, NO_CDC, True, []),
        ({}, WITH_CDC, True, ["PurchasesProbe"]),  # faults have CDC followed, if there is any
    ],
)
def test_only_what_is_asked_for_is_followed(
    tmp_path: Path, settings: dict[str, str], engine: Engine, has_faults: bool, expected: list[str]
) -> None:
    assert names(tmp_path, engine, settings, has_faults=has_faults) == expected


def test_schemas_are_watched_for_an_engine_that_keeps_the_first(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.keeps_first_schemas = True
    assert names(tmp_path, engine) == ["SchemasProbe"]
