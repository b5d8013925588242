"""Tests that every service is sampled once and by its own name, the engine's processes as the
engine's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from racetrack.analysis import raw
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
