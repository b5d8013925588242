"""The services of a run that the user provides: see `elsewhere.py`."""

import json
from collections.abc import Mapping, Sequence
from functools import cache

from racetrack import config, plugins
from racetrack.config import Settings
from racetrack.stack.contract import Say, ServiceClock
from racetrack.stack.elsewhere import RUN_NAME, Elsewhere

# Environment variables of the watchdog process: the names of the provided services that the run
# uses, as a JSON list, and the run's RUN_NAME.
SERVICES = "RACETRACK_ELSEWHERE"
NAME = "RACETRACK_RUN_NAME"


@cache  # cached, because it is called every second
def every() -> tuple[Elsewhere, ...]:
    """Return all services that the user may provide, each after the services that it uses."""
    from racetrack.stack import own_kafka, own_registry

    of_engines = (module.ELSEWHERE for module in plugins.of_all("elsewhere").values())
    return (own_kafka.ELSEWHERE, own_registry.ELSEWHERE, *of_engines)


def configured(settings: Settings) -> list[Elsewhere]:
    """Return the services for which the settings contain an address."""
    return [each for each in every() if each.address(settings)]


def here(services: Sequence[str], settings: Settings) -> list[str]:
    """Return those of `services` that the stack starts."""
    others = {each.service for each in configured(settings) if not each.starts_here}
    return [name for name in services if name not in others]


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
            SetupError, BusyError: see `Elsewhere.check`.
        """
        self._used = [each for each in configured(self._settings) if each.service in services]
        for each in self._used:
            passed = each.check(self._settings)
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
