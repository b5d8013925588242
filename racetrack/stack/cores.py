"""Which cores of the machine a service may use, so that engine, broker, generator and harness do
not take each other's."""

import os
from collections.abc import Sequence

from racetrack import plugins
from racetrack.config import Settings
from racetrack.errors import UsageError
from racetrack.machine import usable_cores

# Nothing else of a stack is measured, so nothing else has cores of its own.
SETTINGS = ("engine_cpus", "broker_cpus", "loadgen_cpus", "harness_cpus")


def of_service(settings: Settings, service: str) -> str:
    """The cores of a service, as ENGINE_CPUS and its like say it; empty: all."""
    if plugins.service_module(service):
        return settings.engine_cpus
    return {"broker": settings.broker_cpus, "loadgen": settings.loadgen_cpus}.get(service, "")


def parsed(cpus: str) -> set[int]:
    """`0,2-3` → {0, 2, 3}."""
    found: set[int] = set()
    for part in filter(None, cpus.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def require_there(settings: Settings) -> None:
    """
    Raises:
        UsageError: a setting names a core that this program may not use.
    """
    for name in SETTINGS:
        asked = str(getattr(settings, name))
        if asked and (missing := parsed(asked) - usable_cores()):
            raise UsageError(
                f"{name.upper()}={asked} can't be had: this machine has the cores"
                f" {_listed(usable_cores())}, not {_listed(missing)}."
            )


def keep_harness_on_its_own(settings: Settings) -> None:
    """From now on this process, with all its threads to come, uses HARNESS_CPUS only."""
    if wanted := parsed(settings.harness_cpus):
        usable_cores()  # while they can still be seen
        os.sched_setaffinity(0, wanted)


def command(settings: Settings, service: str, argv: Sequence[str]) -> Sequence[str]:
    """The command of a service that runs on its own cores only, with all that it starts.

    A service inherits what the harness may use: so one without cores of its own is given all.
    """
    own = of_service(settings, service)
    if not own and not settings.harness_cpus:
        return argv
    return ["taskset", "--cpu-list", own or _listed(usable_cores(), ","), *argv]


def _listed(cores: frozenset[int] | set[int], between: str = ", ") -> str:
    return between.join(map(str, sorted(cores)))
