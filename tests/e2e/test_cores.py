"""End-to-end test that an engine has cores of its own in a comparison: no thread of any other
process may use them, and none of the engine's may use others."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from racetrack import clock, engines, host
from racetrack.config import Settings
from racetrack.stack import processes, resources
from racetrack.units import parse_cores
from tests.e2e.shared import Door
from tests.some_engines import EXAMPLE

pytestmark = pytest.mark.e2e

PLAN = """
settings = { READS_PER_SECOND = "2", TRACER_EVENTS_PER_SECOND = "12" }
phase = [{ window = "30s", settle = "1s", loads = ["500"] }]
"""
HARNESS, READER = "harness", "reader"


def threads_by_service(stack_name: str, harness: psutil.Process) -> Iterator[tuple[str, str, str]]:
    """Yield the service, the thread and the allowed cores of all threads of a run."""
    services = {of.process.pid: of.service for of in processes.members(stack_name)}
    children = (of.pid for of in harness.children(recursive=True))
    for pid in dict.fromkeys((harness.pid, *children, *services)):
        for status in Path("/proc").glob(f"{pid}/task/*/status"):
            try:
                lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
            except (FileNotFoundError, ProcessLookupError):
                continue
            name = f"{services.get(pid, HARNESS)} {pid} {lines['Name']}"
            yield services.get(pid, HARNESS), name, lines["Cpus_allowed_list"]


@pytest.mark.skipif(len(host.separable_cores()) < 2, reason="this machine has one core")
def test_nothing_but_the_engine_may_use_its_cores(
    door: Callable[..., Door], settings: Settings, tmp_path: Path
) -> None:
    plan = tmp_path / "mine.toml"
    plan.write_text(PLAN)
    run = door("race", "compare", EXAMPLE, "--plan", str(plan))
    run.until(r"> set events_per_second 500")
    derived = resources.apart(host.separable_cores())
    own, rest = (parse_cores(derived[name]) for name in ("ENGINE_CPUS", "HARNESS_CPUS"))
    of_engine, seen = engines.find_engine(EXAMPLE).services, set[str]()

    def misplaced() -> list[str]:
        found = []
        for service, name, allowed in threads_by_service(
            settings.stack_name, psutil.Process(run.process.pid)
        ):
            seen.add(service)
            if parse_cores(allowed) != (own if service in of_engine else rest):
                found.append(f"{name}: {allowed}")
        return found

    # The thread that measures the speed of cores moves to each for a tenth of a millisecond.
    assert clock.wait_until(lambda: not misplaced(), 5.0, 0.2), misplaced()
    others = {"mysql", "broker", "registry", "debezium", "loadgen", READER, HARNESS}
    assert {*of_engine, *others} <= seen
    assert run.wait() == 0, run.output
    assert f"ENGINE_CPUS={derived['ENGINE_CPUS']}" in run.output
