"""Tests that every service of a run is sampled, once and by its own name, and that the engine's
processes count as the engine's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from racetrack.analysis import raw
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
