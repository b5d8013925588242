"""Checks before and during a run: engine, settings, installation, broker writes, services, and free
space."""

import math
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

from racetrack import environment
from racetrack.clock import SYSTEM_CLOCK, Clock
from racetrack.config import Settings, heaps_of_engine
from racetrack.engines.contract import Engine
from racetrack.errors import EngineFailed, RacetrackError, SetupError, UsageError
from racetrack.probes import write_check
from racetrack.results.run import RunArguments
from racetrack.stack import applicability, provided, resources
from racetrack.stack.contract import DataFolder, Say, Stack
from racetrack.stack.elsewhere import Elsewhere
from racetrack.workloads.contract import Workload, find_workload

ELSEWHERE = (
    "{} was not started by this run: it ran at {}, with its own version and configuration, where"
    " others may have used it."
)
BLANK = " Its CPU and memory can't be measured from here, so they are blank."
RELAY = " CPU and memory are those of a relay on this machine."
# Services that every engine needs for its input, MySQL if the workload has tables. An engine
# declares further ones in `needs`.
ALWAYS = ("mysql", "broker", "loadgen")
# Settings for the rates of optional events. They are off by default, and some workloads lack them.
OPTIONAL_RATES = ("tracer_events_per_second", "updates_per_second", "deletes_per_second")


def needed_services(engine: Engine, settings: Settings) -> list[str]:
    """Return the services that an experiment with this engine needs."""
    of_all = find_workload(settings.workload).needed(ALWAYS)
    return [*of_all, *engine.needs_in(settings), *engine.services]


def services_of(engine: Engine, settings: Settings) -> list[str]:
    """Return those services that an experiment with this engine needs and the stack starts."""
    return provided.here(needed_services(engine, settings), settings)


def require_usable(engine: Engine, stack: Stack) -> None:
    """Check everything that needs no access to the machine: whether the engine supports the
    workload and the stack, and whether the settings given for this run have an effect.

    Raises:
        UsageError, SetupError: a check failed; the message contains the remedy.
    """
    applicability.require_overrides_applicable(
        services_of(engine, stack.settings),
        [member.name for member in engine.members],
        stack.runtime,
        airgap=stack.settings.airgap,
    )
    resources.require_cores(stack.settings)
    require_raced_on(engine, stack.settings)
    require_replicas(stack.settings, stack.runtime)
    for member in engine.members:
        require_kafka_usable(member, stack.settings)
        require_scalable(member, stack.settings, stack.runtime)
    engine.check(stack)


def make_ready(engine: Engine, stack: Stack, say: Say) -> None:
    """Check, before anything starts, that the engine can run on this stack, and install missing
    components.

    Raises:
        UsageError, SetupError, BusyError: the engine can't run; the message contains the remedy.
    """
    if line := environment.ignored():
        say(line)
    require_usable(engine, stack)
    resources.pin_harness(stack.settings)
    if stack.runtime == "native":  # containers are in groups of their own
        own = [name for member in engine.members for name in heaps_of_engine(member.name)]
        for line in resources.memory_warnings(stack.settings, ("kafka_heap", *own)):
            say(line)
    stack.prepare(needed_services(engine, stack.settings), say)
    for member in engine.members:
        require_known_clock(member, stack)


def require_raced_on(
    engine: Engine,
    settings: Settings,
    find_workload: Callable[[str], Workload] = find_workload,
) -> None:
    """Check that the engine has a script for the workload, that the workload has all optional
    events that the settings enable, and that the engine has a view to read if views are read.

    Raises:
        UsageError: a script, an event or a view is missing, or there is no such workload; or the
            engine's progress can't be measured.
    """
    workload = find_workload(settings.workload).narrowed(settings)
    for member in engine.members:
        if member.script_ending:
            member.script(settings)
            require_scripts_of_views(member, settings, workload)
        if workload.positions:
            require_tracer_rows(member, settings, workload)
    for rate in OPTIONAL_RATES:
        if getattr(settings, rate) and rate not in workload.rates:
            raise UsageError(
                f"{rate.upper()} has no effect: the workload {workload.name} has no"
                f" {rate.partition('_')[0]}. Set it to 0."
            )
    for member in engine.members if settings.reads_per_second else ():
        if why := why_unreadable(member, settings, workload):
            raise UsageError(f"READS_PER_SECOND: {why} Set it to 0.")


def require_scripts_of_views(engine: Engine, settings: Settings, workload: Workload) -> None:
    """Check that the engine has a script for each selected view.

    Raises:
        UsageError: it lacks one.
    """
    if missing := workload.without_script(engine.script_ending, settings):
        every = workload.scripts_of_views(engine.script_ending, _with_all_views(settings, workload))
        raise UsageError(
            f"{workload.selected_by.upper()}: {engine.title} has no program for"
            f" {', '.join(missing)} of {workload.name}. Choose among those that it has"
            f" (--queries): {', '.join(name for name, path in every.items() if path.exists())}."
        )


def require_tracer_rows(engine: Engine, settings: Settings, workload: Workload) -> None:
    """Check that the selected views of the engine have tracer rows, which show its progress.

    Raises:
        UsageError: no selected view has any.
    """
    if engine.traced_views(settings):
        return
    every = engine.traced_views(_with_all_views(settings, workload))
    if engine.script_ending:
        has = workload.with_scripts(engine.script_ending)
        every = [traced for traced in every if traced.view in has]
    alone = [traced.view for traced in find_workload(workload.name).traced_views if traced.alone]
    raise UsageError(
        f"{workload.selected_by.upper()}={','.join(workload.selected(settings))}: the progress of"
        f" {engine.title} can't be measured, since these views have no rows of tracer events."
        f" Choose or add one of {', '.join(traced.view for traced in every)}"
        f"{'; or only ' * bool(alone)}{', '.join(alone)} (--queries)."
    )


def _with_all_views(settings: Settings, workload: Workload) -> Settings:
    """Return the settings with all views of the workload selected."""
    return settings.model_copy(update={workload.selected_by: ",".join(workload.selectable)})


def why_unreadable(engine: Engine, settings: Settings, workload: Workload) -> str:
    """Return why an engine's views can't be read by the view reader; empty if they can."""
    absent, read = engine.absent_views(settings), [query.view for query in workload.queries]
    if not all(view in absent for view in read):
        return ""
    return f"{engine.title} has none of the views that are read ({', '.join(read)})."


def require_kafka_usable(engine: Engine, settings: Settings) -> None:
    """Check that the engine can use a Kafka that runs elsewhere, if there is one.

    Raises:
        UsageError: the engine can't use that Kafka.
    """
    if settings.kafka_bootstrap_servers and not engine.kafka_elsewhere:
        raise UsageError(
            f"KAFKA_BOOTSTRAP_SERVERS: {engine.title} can't use a Kafka that runs elsewhere."
            " Unset it."
        )


def require_scalable(engine: Engine, settings: Settings, runtime: str) -> None:
    """Check that the engine can have ENGINE_REPLICAS replicas in this runtime.

    Raises:
        UsageError: the engine can't have them.
    """
    replicas = settings.engine_replicas
    if replicas == 1:
        return
    given = f"ENGINE_REPLICAS={replicas} is not possible:"
    if not engine.scalable_on:
        raise UsageError(f"{given} {engine.title} can't be scaled. Set it to 1.")
    if runtime not in engine.scalable_on:
        others = " or ".join(f"RUNTIME={name}" for name in engine.scalable_on)
        raise UsageError(
            f"{given} {engine.title} can't be scaled in the runtime {runtime}. Set {others}, or"
            " ENGINE_REPLICAS=1."
        )
    _require_shared("ENGINE_REPLICAS", replicas, settings)


# Runtimes in which the broker and the load generator can have several replicas.
REPLICAS_ON = ("kubernetes",)


def require_replicas(settings: Settings, runtime: str) -> None:
    """Check that there can be BROKER_REPLICAS and LOADGEN_REPLICAS in this runtime.

    Raises:
        UsageError: this runtime can't have them.
    """
    if settings.broker_replicas > 1 and settings.kafka_bootstrap_servers:
        raise UsageError(
            "BROKER_REPLICAS has no effect on a Kafka that runs elsewhere"
            " (KAFKA_BOOTSTRAP_SERVERS). Set it to 1."
        )
    for name in ("BROKER_REPLICAS", "LOADGEN_REPLICAS"):
        replicas: int = getattr(settings, name.lower())
        if replicas > 1 and runtime not in REPLICAS_ON:
            raise UsageError(
                f"{name}={replicas} is not possible in the runtime {runtime}. Set"
                f" RUNTIME=kubernetes, or {name}=1."
            )
        _require_shared(name, replicas, settings)


def _require_shared(name: str, replicas: int, settings: Settings) -> None:
    """Check that each replica has a partition."""
    if replicas > (partitions := settings.events_partitions):
        raise UsageError(
            f"{name}={replicas} is not possible: the replicas share the partitions of the input,"
            f" and there are {partitions}. Set EVENTS_PARTITIONS={replicas} or more."
        )


# A run fails if the clocks make the lag more uncertain than this.
MOST_UNCERTAIN_MS = 20.0


def require_known_clock(engine: Engine, stack: Stack) -> None:
    """Check that the clocks of the machines that stamp events and views are known exactly enough:
    their offset from this machine's clock, and its uncertainty.

    Raises:
        SetupError: a clock is not known exactly enough.
    """
    clock = stack.clocks.get(engine.observer_in(stack.settings).stamped_by)
    due = stack.clocks.get("loadgen")
    if clock and clock.uncertainty_ms > MOST_UNCERTAIN_MS:
        raise SetupError(
            f"Lag of {engine.title} can't be measured: {clock.title} stamps its views, and {clock}."
            f" At most ± {MOST_UNCERTAIN_MS:.0f} ms are accepted. Run the harness nearer to"
            f" {clock.title}."
        )
    if due and abs(due.offset_ms) + due.uncertainty_ms > MOST_UNCERTAIN_MS:
        raise SetupError(
            f"Lag can't be measured: the load generator stamps events, and {due}. Offset and"
            f" uncertainty may be {MOST_UNCERTAIN_MS:.0f} ms together. Synchronize both clocks"
            " (chrony), or run the harness nearer to the node."
        )


def caveats_of_elsewhere(engine: Engine, stack: Stack) -> list[str]:
    """Return warnings about services that the run did not start."""
    settings = stack.settings
    used = [
        service
        for service in provided.configured(settings)
        if service.service in needed_services(engine, settings)
    ]
    measured = engine.processes(stack) if engine.runs_elsewhere(settings) else {}

    def cost(service: Elsewhere) -> str:
        if service.starts_here and service.service not in engine.services:
            return RELAY
        return "" if service.service in measured else BLANK

    texts = [ELSEWHERE.format(service.title, service.setting) + cost(service) for service in used]
    return [*texts, *caveats_of_clocks(engine, stack)]


def caveats_of_clocks(engine: Engine, stack: Stack) -> list[str]:
    """Return warnings on how the clocks of other machines affect the engine's figures."""
    texts, stamped_by = [], engine.observer_in(stack.settings).stamped_by
    for service, clock in stack.clocks.items():
        if service == stamped_by:
            texts.append(f"Lag is corrected by the clock that stamps the views: {clock}.")
        elif service in engine.services:
            texts.append(f"Lag is by this machine's clock; {clock}.")
        elif service == "loadgen":
            texts.append(f"The load generator stamps events: {clock}.")
    return texts


def check_writes(stack: Stack, while_waiting: Callable[[], None]) -> None:
    """Check that the broker of a running stack accepts writes and stores the generator's messages.

    Raises:
        WriteCheckError: the check failed; the message contains the reason, if known.
    """
    topic = find_workload(stack.settings.workload).topic.name
    is_here = not stack.settings.kafka_bootstrap_servers
    log = stack.log_of("broker") if is_here else None
    write_check.check_writes(stack.endpoints, topic, log, while_waiting)


def check_services(stack: Stack, engine: Engine, besides: Collection[str] = ()) -> None:
    """Raise an error if a service of the stack has ended unexpectedly. The engine's own services
    are checked last, since they may have failed because another service did. Services in `besides`,
    which belong to other engines, are not checked.

    Raises:
        EngineFailed: one of the engine's own services has ended.
        RacetrackError: another service has ended.
    """
    died = {name: why for name, why in stack.died().items() if name not in besides}
    own = engine.services_in(stack.settings)
    for name in sorted(died, key=lambda name: name in own):
        kind = EngineFailed if name in own else RacetrackError
        raise kind(f"{name} ended during the run: {died[name]}")


CHECK_EVERY_S = 0.5
# A broker that runs out of space ends with a stack trace. So end the run earlier: when less than
# LEAST_BYTES are free, or when the load would fill the free space within LEAST_S.
LEAST_BYTES, LEAST_S = 32 << 20, 2.0
SAMPLE_S = 2.0  # the free space of another machine may have been measured this long ago
LEAST_BYTES_FOR_LOGS = 8 << 20
SEGMENT_BYTES = 64 << 20  # the broker only deletes whole segments, files of this size


def free_space(folder: Path) -> tuple[int, int]:
    """Return free and total bytes of the file system of a folder."""
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize


MeasureSpace = Callable[[Path], tuple[int, int]]


def space_of(folder: DataFolder, measure: MeasureSpace = free_space) -> tuple[int, int]:
    """Return free and total bytes of the file system of a folder. On another machine, the stack has
    measured them."""
    return folder.space or measure(folder.path)


class NoSpace(RacetrackError):
    """A file system to which the run writes is full or nearly full."""


class SpaceWatch:
    """Watches the free space of the file systems to which a run writes."""

    def __init__(
        self,
        stack: Stack,
        run_folder: Path,
        measure: MeasureSpace = free_space,
        clock: Clock = SYSTEM_CLOCK,
        every_s: float = CHECK_EVERY_S,
    ) -> None:
        self._stack, self._measure, self._clock, self._every_s = stack, measure, clock, every_s
        self._logs = DataFolder(
            run_folder,
            str(resources.mount_point(run_folder)),
            "Free some, or set LOGS_FOLDER to a folder on another disk",
        )
        self._checked_s = 0.0
        # Time and free bytes of each file system when the load last changed.
        self._before: dict[Path, tuple[float, int]] = {}

    def load_changes(self) -> None:
        """Record that the load changes now. The speed at which it fills each file system is
        estimated from this time on."""
        now_s, folders = self._clock.monotonic(), self._stack.data_folders()
        self._before = {
            folder.path: (now_s, space_of(folder, self._measure)[0]) for folder in folders
        }

    def check(self) -> None:
        """Check that no file system is nearly full.

        Raises:
            NoSpace: a file system is nearly full.
        """
        now_s = self._clock.monotonic()
        if now_s - self._checked_s < self._every_s:
            return
        self._checked_s = now_s
        if (free := self._measure(self._logs.path)[0]) < LEAST_BYTES_FOR_LOGS:
            raise NoSpace(
                f"no space in {self._logs.name}: {format_bytes(free)} left. {self._logs.remedy}."
            )
        for folder in self._stack.data_folders():
            # The folder is missing if its container has just ended; `check_services` reports that.
            with suppress(FileNotFoundError, ProcessLookupError):
                self._check_data(folder, now_s)

    def _check_data(self, folder: DataFolder, now_s: float) -> None:
        free, total = space_of(folder, self._measure)
        began_s, free_then = self._before.setdefault(folder.path, (now_s, free))
        per_s = (free_then - free) / (now_s - began_s) if now_s > began_s else 0.0
        least_s = LEAST_S + (SAMPLE_S if folder.space else 0.0)
        if free >= max(min(LEAST_BYTES, total // 10), least_s * per_s):
            return
        fills = f", this load fills it in {free_then / per_s:.0f} s" if per_s > 0 else ""
        raise NoSpace(
            f"no space in {folder.name}: {format_bytes(total)} in all{fills}."
            f" {folder.remedy}, or let the broker keep less (KAFKA_RETENTION_BYTES)."
        )


def space_warnings(
    stack: Stack, arguments: RunArguments, measure: MeasureSpace = free_space
) -> Iterator[str]:
    """Yield a warning for each file system that the load will fill before the run ends."""
    if stack.settings.kafka_bootstrap_servers:
        return  # the broker stores the load elsewhere
    per_s, most = stored_by_broker(stack.settings, arguments.events_per_s)
    takes_s = arguments.wait_s + arguments.samples * arguments.delay_s + arguments.warm_up_s / 2
    for folder in stack.data_folders():
        free, _ = space_of(folder, measure)
        if min(per_s * takes_s, most) > free:
            yield (
                f"{folder.name} has {format_bytes(free)} free: this load fills it in"
                f" {free / per_s:.0f} s, and the run takes {takes_s:.0f} s. {folder.remedy}, or let"
                " the broker keep less (KAFKA_RETENTION_BYTES)."
            )


def stored_by_broker(settings: Settings, events_per_s: int) -> tuple[float, float]:
    """Return the bytes per second that each broker stores at this rate, and the largest number of
    bytes that it retains."""
    per_event = find_workload(settings.workload).stored_bytes_in(settings)
    limit, brokers = settings.kafka_retention_bytes, settings.broker_replicas
    partitions = math.ceil(settings.events_partitions / brokers)
    most = float("inf") if limit < 0 else partitions * (limit + SEGMENT_BYTES)
    return events_per_s * per_event / brokers, float(most)


def format_bytes(size: int) -> str:
    """Format a size: 1,181,116,006 → `1.1 GiB`."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
