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


class Contained(FakeStack):
    """A fake stack of containers. Its broker is also the registry, and all its containers but one
    have accounts of CPU time and memory."""

    def apart(self, services: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(shown(called(service)) for service in services))

    def accounting(self, service: str) -> Accounting | None:
        return None if service == "mysql" else cast(Accounting, object())


class Elsewhere(FakeEngine):
    """An engine that starts nothing, and names a process of this machine as its own."""

    services = ()
    named: Mapping[str, list[int]] = {"far": [7]}

    def processes(self, stack: Stack) -> Mapping[str, list[int]]:
        return self.named


WITH_REGISTRY = FakeEngine(needs=("registry", "debezium"))
OWN, INPUT = ["manager", "worker"], ["broker", "loadgen", "mysql"]


@pytest.mark.parametrize(
    ("engine", "stack", "sampled"),
    [
        (WITH_REGISTRY, FakeStack(), [*OWN, *INPUT, "registry", "debezium"]),
        (WITH_REGISTRY, Contained(runtime="compose"), [*OWN, *INPUT, "debezium"]),
        (Elsewhere(), FakeStack(), ["far", *INPUT, "debezium"]),
    ],
)
def test_every_service_is_sampled_once_the_engines_first(
    engine: FakeEngine, stack: FakeStack, sampled: list[str]
) -> None:
    assert list(engine_run.processes(engine, stack.as_stack())) == sampled


def test_where_the_engines_processes_are_not_known_foreign_cpu_is_unknown(
    tmp_path: Path,
) -> None:
    unknown = Elsewhere()
    unknown.named = {}

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
    assert row(unknown).services_s is None


WITH_CDC, NO_CDC, KEEPS_FIRST = FakeEngine(), FakeEngine(needs=()), FakeEngine()
KEEPS_FIRST.keeps_first_schemas = True


@pytest.mark.parametrize(
    ("settings", "engine", "has_faults", "expected"),
    [
        ({}, WITH_CDC, False, []),
        ({"TRACER_EVENTS_PER_SECOND": "12"}, WITH_CDC, False, ["ViewsProbe", "PurchasesProbe"]),
        ({"READS_PER_SECOND": "2"}, WITH_CDC, False, ["ReadsProbe"]),
        ({}, KEEPS_FIRST, False, ["SchemasProbe"]),
        ({}, NO_CDC, True, []),
        ({}, WITH_CDC, True, ["PurchasesProbe"]),  # faults have CDC followed, if there is any
    ],
)
def test_only_what_is_asked_for_is_followed(
    tmp_path: Path, settings: dict[str, str], engine: Engine, has_faults: bool, expected: list[str]
) -> None:
    stack, folder = FakeStack(load(settings)).as_stack(), RunFolder.create(tmp_path, "fake", "100")
    arrivals = cast(ArrivalsProbe, None)
    followed = (
        *engine_run.engine_probes(engine, stack, folder, no_outage, {}),
        engine_run.changes_probe(engine, stack, folder, arrivals, no_outage, has_faults=has_faults),
    )
    assert [type(probe).__name__ for probe in followed if probe] == expected
