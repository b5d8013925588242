"""What is sampled of a run: all services that its stack started, each by its name."""

from racetrack.engines.contract import Engine
from racetrack.probes.cgroup import CgroupProbe
from racetrack.probes.noise import HarnessMeter, NoiseProbe, ServicesMeter
from racetrack.probes.thread import Probe
from racetrack.probes.usage import Meter, UsageProbe
from racetrack.results.folder import RunFolder
from racetrack.run.readiness import services_of
from racetrack.stack.contract import Accounting, Stack


def processes(engine: Engine, stack: Stack) -> dict[str, list[int]]:
    """Service → its live processes: the engine's first, then the broker and the load generator,
    then the others."""
    own = engine.processes(stack)
    started = stack.apart(services_of(engine, stack.settings))
    others = [name for name in ("broker", "loadgen", *started) if name not in own]
    return {**own, **stack.pids(others)}


def accounts(engine: Engine, stack: Stack) -> dict[str, Accounting]:
    """The kernel's account of each of them, where the runtime has one."""
    found = {name: stack.accounting(name) for name in processes(engine, stack)}
    return {name: account for name, account in found.items() if account}


def probes(
    engine: Engine, stack: Stack, meter: Meter, folder: RunFolder, every_s: float
) -> list[Probe]:
    """What the services use, and what else the machine does. Where the engine's processes are not
    known, nobody can tell which are foreign."""
    found: list[Probe] = [UsageProbe(meter, every_s, folder)]
    kept_apart = accounts(engine, stack)
    if kept_apart:
        found.append(CgroupProbe(kept_apart, every_s, folder))
    if not stack.unmeasurable:
        services = ServicesMeter(meter, kept_apart, stack.helpers)
        known = services if engine.processes(stack) else None
        found.append(NoiseProbe(known, HarnessMeter(meter.pids), folder))
    return found
