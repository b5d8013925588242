"""What is followed of a run beside its count and its costs: its views, what a client reads there,
and inserts on their way through CDC."""

from collections.abc import Callable, Iterator

from racetrack.engines.contract import Engine
from racetrack.probes.loadgen import ArrivalsProbe
from racetrack.probes.purchases import PurchasesProbe
from racetrack.probes.reads import ReadsProbe
from racetrack.probes.schemas import SchemasProbe
from racetrack.probes.thread import Probe
from racetrack.probes.views import ViewsProbe
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import find_workload

# Services → whether one of them is or was away on purpose since a time of the monotonic clock.
ExcusedBy = Callable[..., Callable[[float], bool]]


def probes(
    engine: Engine,
    stack: Stack,
    folder: RunFolder,
    arrivals: ArrivalsProbe,
    excused_by: ExcusedBy,
    *,
    has_faults: bool,
) -> Iterator[Probe]:
    """Those that the settings ask for; inserts also during faults, which they may suffer from."""
    settings = stack.settings
    if settings.tracer_events_per_second:
        own = excused_by(*engine.services_in(settings))
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
        yield PurchasesProbe(kafka, topic, kinds, arrivals, folder, excused_by("broker"))
