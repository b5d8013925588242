"""Selection of the probes of a run, depending on its settings and engine."""

from collections.abc import Callable, Iterator

from racetrack.engines.contract import Engine
from racetrack.probes.base import HadOutage, Probe
from racetrack.probes.cdc import PurchasesProbe, SchemasProbe
from racetrack.probes.loadgen import ArrivalsProbe
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
    started = stack.apart(services_of(engine, stack.settings))
    others = [name for name in ("broker", "loadgen", *started) if name not in own]
    return {**own, **stack.pids(others)}


def accounts(engine: Engine, stack: Stack) -> dict[str, Accounting]:
    """Return the kernel's accounting of each service, if the runtime provides it."""
    found = {name: stack.accounting(name) for name in processes(engine, stack)}
    return {name: account for name, account in found.items() if account}


def usage_probes(
    engine: Engine, stack: Stack, meter: Meter, folder: RunFolder, every_s: float
) -> list[Probe]:
    """Return the probes of the services' resource usage and of the machine's noise. If the engine's
    processes are unknown, the CPU time of other programs is not measured."""
    found: list[Probe] = [UsageProbe(meter, every_s, folder)]
    kept_apart = accounts(engine, stack)
    if kept_apart:
        found.append(CgroupProbe(kept_apart, every_s, folder))
    if not stack.unmeasurable:
        services = ServicesMeter(meter, kept_apart, stack.helpers)
        known = services if engine.processes(stack) else None
        found.append(NoiseProbe(known, HarnessMeter(meter.pids), folder))
    return found


OutageOf = Callable[..., HadOutage]  # takes names of services; asks for an outage of any of them


def optional_probes(
    engine: Engine,
    stack: Stack,
    folder: RunFolder,
    arrivals: ArrivalsProbe,
    outage_of: OutageOf,
    *,
    has_faults: bool,
) -> Iterator[Probe]:
    """Yield the probes that the settings enable. Inserts are also followed if there are faults,
    since these may delay inserts."""
    settings = stack.settings
    if settings.tracer_events_per_second:
        own = outage_of(*engine.services_in(settings))
        yield ViewsProbe(engine, stack, folder, own)
    if settings.reads_per_second:
        yield ReadsProbe(engine, stack, folder)
    if engine.keeps_first_schemas:
        yield SchemasProbe(engine, stack)
    workload = find_workload(settings.workload)
    table = workload.watched_table
    if table and "debezium" in engine.needs and (settings.tracer_events_per_second or has_faults):
        topic, kinds = workload.cdc_topic(table), workload.watched_kinds
        kafka = stack.endpoints.kafka
        yield PurchasesProbe(kafka, topic, kinds, arrivals, folder, outage_of("broker"))
