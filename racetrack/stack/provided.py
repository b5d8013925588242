"""The services of a run that the user provides: see `elsewhere.py`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from racetrack import config, plugins
from racetrack.config import Settings
from racetrack.errors import UsageError
from racetrack.stack.contract import Say, ServiceClock
from racetrack.stack.elsewhere import RUN_NAME, Elsewhere, Passed
from racetrack.stack.prometheus import Prometheus, Queries, queries

# Environment variables of the watchdog process: the names of the provided services that the run
# uses, as a JSON list, and the run's RUN_NAME.
SERVICES = "RACETRACK_ELSEWHERE"
NAME = "RACETRACK_RUN_NAME"


@cache  # cached, because it is called every second
def every() -> tuple[Elsewhere, ...]:
    """Return all services that the user may provide, each after the services that it uses."""
    from racetrack.stack import own_connect, own_kafka, own_mysql, own_registry

    of_engines = (module.ELSEWHERE for module in plugins.of_all("elsewhere").values())
    of_stack: tuple[Elsewhere, ...] = (
        own_kafka.ELSEWHERE,
        own_registry.ELSEWHERE,
        own_mysql.ELSEWHERE,
        own_connect.ELSEWHERE,
    )
    return (*of_stack, *of_engines)


def configured(settings: Settings) -> list[Elsewhere]:
    """Return the services for which the settings contain an address."""
    return [each for each in every() if each.address(settings)]


def here(services: Sequence[str], settings: Settings) -> list[str]:
    """Return those of `services` that the stack starts."""
    others = {each.service for each in configured(settings) if not each.starts_here}
    return [name for name in services if name not in others]


def pods_setting(service: Elsewhere) -> str:
    """Return the setting that names a service's pods, such as KAFKA_PODS. It has the same prefix as
    the setting of the service's address."""
    return f"{service.setting.partition('_')[0]}_PODS"


def pods_of(service: Elsewhere, settings: Settings) -> str:
    """Return the label by which the user names a service's pods, `NAMESPACE/LABEL=VALUE`; empty if
    there is none."""
    return str(getattr(settings, pods_setting(service).lower(), ""))


def require_pods_possible(settings: Settings) -> None:
    """Check the settings that name pods: they apply only on Kubernetes, to services that the user
    provides and that no Prometheus query measures.

    Raises:
        UsageError: one of these conditions is not met.
    """
    for each in every():
        if not pods_of(each, settings):
            continue
        if not each.address(settings) or settings.runtime != "kubernetes":
            raise UsageError(
                f"{pods_setting(each)} needs RUNTIME=kubernetes, and an address in {each.setting}."
            )
        if measured := queries(each, settings):
            raise UsageError(
                f"{pods_setting(each)} and {measured.setting('cpu')} exclude each other."
            )


def queried(settings: Settings) -> list[Queries]:
    """Return the queries for services whose CPU time and memory a Prometheus reports.

    Raises:
        UsageError: settings contradict each other.
    """
    found = (queries(each, settings) for each in configured(settings))
    return [each for each in found if each]


def check(service: Elsewhere, settings: Settings) -> Passed:
    """Check a service, and the Prometheus queries for it.

    Raises:
        UsageError: settings contradict each other.
        SetupError, BusyError: see `Elsewhere.check`.
    """
    measured = queries(service, settings)
    passed = service.check(settings)
    if not measured:
        return passed
    Prometheus(settings).check(measured, service.title)
    return replace(passed, operations=(*passed.operations, "be measured by Prometheus"))


class Provided:
    """The provided services of one stack."""

    def __init__(self, settings: Settings) -> None:
        self.clocks: dict[str, ServiceClock] = {}
        self._settings = settings
        self._used: list[Elsewhere] | None = None  # None until `check` is called

    @property
    def used(self) -> Sequence[Elsewhere]:
        """The provided services that the run uses; before `check`, all that have an address in the
        settings."""
        return configured(self._settings) if self._used is None else self._used

    def check(self, services: Sequence[str], say: Say) -> list[str]:
        """Check those of `services` that the user provides, and measure their clocks. Return the
        services that the stack has to start.

        Raises:
            UsageError: settings contradict each other.
            SetupError, BusyError: see `Elsewhere.check`.
        """
        require_pods_possible(self._settings)
        self._used = [each for each in configured(self._settings) if each.service in services]
        for each in self._used:
            passed = check(each, self._settings)
            clock = ""
            if passed.clock:
                self.clocks[each.service] = passed.clock
                clock = f"; {passed.clock}"
            say(f"{each.title} at {each.address(self._settings)} can be used{clock}.")
        return here(services, self._settings)

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables that `remove_of_killed` needs to remove what this run
        created. They contain secrets."""
        if not self._used:
            return {}
        names = [each.service for each in self._used]
        return {**config.revealed(self._settings), SERVICES: json.dumps(names), NAME: RUN_NAME}

    def remove(self, say: Say, left_by: str = "") -> None:
        """Remove what this run created. In another process, such as that of `./race down`, remove
        what the run with the RUN_NAME `left_by` created. Idempotent."""
        name = left_by if self._used is None else RUN_NAME
        # In reverse order, because each service may use those before it.
        for each in reversed(self.used):
            for line in each.remove(self._settings, name):
                say(f"  {line}")


def remove_of_killed(variables: Mapping[str, str]) -> list[str]:
    """Remove what a killed run created; `variables` are those of `Provided.environment`. Return
    lines for the user."""
    if SERVICES not in variables:
        return []
    settings, names = config.load(), json.loads(variables[SERVICES])
    used = [each for each in reversed(every()) if each.service in names]
    return [line for each in used for line in each.remove(settings, variables[NAME])]
