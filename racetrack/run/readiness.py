"""What holds before an engine is raced, and all the while: it can run here, all is installed, the
broker takes writes, and no service has died."""

from collections.abc import Callable

from racetrack import environment
from racetrack.config import Settings
from racetrack.engines.contract import Engine
from racetrack.errors import EngineFailed, RacetrackError, UsageError
from racetrack.probes import write_check
from racetrack.stack import applicability, resources
from racetrack.stack.contract import Say, Stack
from racetrack.workloads.contract import find_workload

# Where every engine's input comes from; an engine names what it needs beside them.
ALWAYS = ("mysql", "broker", "loadgen")
# Of what a workload may have beside its main topic, and does not unless it is asked for.
OPTIONAL_RATES = ("tracer_events_per_second", "updates_per_second", "deletes_per_second")


def services_of(engine: Engine, settings: Settings) -> list[str]:
    """The services that an experiment with this engine needs, and no others."""
    return [*ALWAYS, *engine.needs, *engine.services_in(settings)]


def require_usable(engine: Engine, stack: Stack) -> None:
    """Check all that can be known while another run has the machine: that the engine can race on
    this workload and this stack, and that the settings given for this run have an effect.

    Raises:
        UsageError, SetupError: no; the message says what to do.
    """
    applicability.require_overrides_applicable(
        {*services_of(engine, stack.settings), *engine.services},
        stack.runtime,
        airgap=stack.settings.airgap,
    )
    resources.require_cores(stack.settings)
    require_raced_on(engine, stack.settings)
    engine.check(stack)


def make_ready(engine: Engine, stack: Stack, say: Say) -> None:
    """Check before anything starts that the engine can run on this stack, and install what is
    missing.

    Raises:
        UsageError, SetupError, BusyError: no; the message says what to do.
    """
    if line := environment.ignored():
        say(line)
    require_usable(engine, stack)
    resources.pin_harness(stack.settings)
    stack.prepare(services_of(engine, stack.settings), say)


def require_raced_on(engine: Engine, settings: Settings) -> None:
    """Has the engine a script for the workload, and has that what these settings ask for?

    Raises:
        UsageError: no, or there is no such workload.
    """
    workload = find_workload(settings.workload)
    if engine.script_ending:
        engine.script(settings)
    for rate in OPTIONAL_RATES:
        if getattr(settings, rate) and rate not in workload.rates:
            raise UsageError(
                f"{rate.upper()} does nothing: the workload {workload.name} has no"
                f" {rate.partition('_')[0]}. Set it to 0."
            )


def check_writes(stack: Stack, meanwhile: Callable[[], None]) -> None:
    """Check that the broker of a running stack takes writes and keeps what the generator sends.

    Raises:
        WriteCheckError: it does not; the message has the reason, if known.
    """
    topic = find_workload(stack.settings.workload).topic.name
    write_check.check_writes(stack.endpoints, topic, stack.log_of("broker"), meanwhile)


def check_services(stack: Stack, engine: Engine) -> None:
    """Raise if a service of the stack ended though nobody asked it to. The engine's own services
    come last, since they may have failed because another did.

    Raises:
        RacetrackError: one did; EngineFailed: it is one of the engine's own.
    """
    died = stack.died()
    own = engine.services_in(stack.settings)
    for name in sorted(died, key=lambda name: name in own):
        kind = EngineFailed if name in own else RacetrackError
        raise kind(f"{name} ended in mid-run: {died[name]}")
