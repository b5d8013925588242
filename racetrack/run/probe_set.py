"""Selection of the probes of a run, depending on its settings and engine."""

from collections.abc import Collection, Iterator

from racetrack.engines.contract import Engine
from racetrack.probes.base import HadOutage, Probe
from racetrack.probes.cdc import PurchasesProbe, SchemasProbe
from racetrack.probes.loadgen import ArrivalsProbe
from racetrack.probes.nodes import NodesProbe
from racetrack.probes.noise import HarnessMeter, NoiseProbe, ServicesMeter
from racetrack.probes.usage import CgroupProbe, Meter, UsageProbe
from racetrack.probes.views import ReadsProbe, ViewsProbe
from racetrack.results.folder import RunFolder
from racetrack.run.checks import services_of
from racetrack.stack.contract import Accounting, Stack
from racetrack.workloads.contract import find_workload


def processes(engine: Engine, stack: Stack) -> dict[str, list[int]]:
    """Return the live processes of each service. The engine's services come first, then broker and
    load generator, then all others."""
    own = engine.processes(stack)
    return {**own, **stack.pids(_others(own, engine, stack))}


def service_names(engine: Engine, stack: Stack) -> list[str]:
    """Return the names of the services in `processes`, in the same order."""
    own = engine.services_in(stack.settings)
    return [*own, *_others(own, engine, stack)]


def _others(own: Collection[str], engine: Engine, stack: Stack) -> list[str]:
    started = stack.apart(services_of(engine, stack.settings))
    first = [name for name in ("broker", "loadgen") if name in started]
    return [name for name in dict.fromkeys([*first, *started]) if name not in own]


def accounts(engine: Engine, stack: Stack) -> dict[str, Accounting]:
    """Return the kernel's accounting of each service, if the runtime provides it."""
    found = {name: stack.accounting(name) for name in processes(engine, stack)}
    return {name: account for name, account in found.items() if account}


def usage_probes(
    engine: Engine, stack: Stack, meter: Meter, folder: RunFolder, every_s: float
) -> list[Probe]:
    """Return the probes of the services' resource usage and of the machine's noise. If the engine's
    processes are unknown, the CPU time of other programs is not measured."""
    found: list[Probe] = []
    kept_apart = accounts(engine, stack)
    if stack.agents:
        found.append(NodesProbe(stack.agents, meter, folder))
    else:
        found.append(UsageProbe(meter, every_s, folder))
    if kept_apart:
        found.append(CgroupProbe(kept_apart, every_s, folder))
    if not stack.unmeasurable:
        services = ServicesMeter(meter, kept_apart, stack.helpers)
        known = services if engine.processes(stack) or stack.agents else None
        found.append(NoiseProbe(known, HarnessMeter(meter.pids), folder))
    return found


def engine_probes(
    engine: Engine, stack: Stack, folder: RunFolder, had_outage: HadOutage
) -> Iterator[Probe]:
    """Yield the probes of one engine that the settings enable."""
    settings = stack.settings
    if settings.tracer_events_per_second:
        yield ViewsProbe(engine, stack, folder, had_outage)
    if settings.reads_per_second:
        yield ReadsProbe(engine, stack, folder, settings.reads_per_second)
    if engine.keeps_first_schemas:
        yield SchemasProbe(engine, stack)


def changes_probe(
    engine: Engine,
    stack: Stack,
    folder: RunFolder,
    arrivals: ArrivalsProbe,
    had_outage: HadOutage,
    *,
    has_faults: bool,
) -> Probe | None:
    """Return the probe of inserts on their way through CDC, if there are tracer events, or faults
    that may delay inserts; None if the workload watches no table, or no engine reads one by CDC."""
    settings = stack.settings
    workload = find_workload(settings.workload)
    if not (settings.tracer_events_per_second or has_faults):
        return None
    if not (workload.watched_table and "debezium" in engine.needs):
        return None
    topic, kinds = workload.cdc_topic(workload.watched_table), workload.watched_kinds
    return PurchasesProbe(stack.endpoints.kafka, topic, kinds, arrivals, folder, had_outage)
