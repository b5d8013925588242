"""What is followed of a run beside its count and its costs: its views, what a client reads there,
and inserts on their way through CDC."""

from collections.abc import Callable, Iterator

from engines.contract import Engine
from racetrack.probes.loadgen import Control
from racetrack.probes.purchases import PurchasesProbe
from racetrack.probes.reads import ReadsProbe
from racetrack.probes.thread import Probe
from racetrack.probes.views import ViewsProbe
from racetrack.runfolder import RunFolder
from racetrack.stack.contract import Stack
from racetrack.workload import find_workload

# Services → whether one of them is or was away on purpose since a time of the monotonic clock.
ExcusedBy = Callable[..., Callable[[float], bool]]


def probes(
    engine: Engine, stack: Stack, folder: RunFolder, excused_by: ExcusedBy, *, has_faults: bool
) -> Iterator[Probe]:
    """Those that the settings ask for; inserts also during faults, which they may suffer from."""
    settings = stack.settings
    if settings.marks_per_second:
        own = excused_by(*engine.services_in(settings))
        yield ViewsProbe(engine, stack, folder, own)
    if settings.reads_per_second:
        yield ReadsProbe(engine, stack, folder)
    table = find_workload(settings.workload).watched_table
    if table and "debezium" in engine.needs and (settings.marks_per_second or has_faults):
        yield _inserts(stack, table, folder, excused_by("broker"))


def _inserts(
    stack: Stack, table: str, folder: RunFolder, excused: Callable[[float], bool]
) -> PurchasesProbe:
    where, workload = stack.endpoints, find_workload(stack.settings.workload)
    return PurchasesProbe(
        where.kafka,
        workload.cdc_topic(table),
        workload.watched_kinds,
        Control(where.loadgen_host, where.loadgen_port),
        folder,
        excused,
    )
