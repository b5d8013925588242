"""Recipes of all parts (installed components), by name."""

from collections.abc import Mapping
from functools import cache

from racetrack import plugins
from racetrack.errors import SetupError
from racetrack.install import base, central, debian, java, pypi
from racetrack.install.recipe import Installs, Make, Recipe


def recipe(part: str, versions: Mapping[str, str]) -> Recipe:
    """Return the recipe of a part; `versions` come from `read_versions`.

    Raises:
        SetupError: there is no such part.
    """
    found = {**_needed(), **_on_request()}.get(part)
    if found is None:
        known = ", ".join((*parts(), *on_request()))
        raise SetupError(f"There is no part {part!r}. The parts are: {known}.")
    return found(versions)


def parts() -> tuple[str, ...]:
    """Return the names of all parts that the native runtime needs."""
    return tuple(_needed())


def on_request() -> tuple[str, ...]:
    """Return the names of all other parts, which are installed only if they are named."""
    return tuple(_on_request())


# Functions instead of constants, to avoid a circular import: the engines' recipes import this
# package.
@cache
def _needed() -> Mapping[str, Make]:
    return {
        # All parts are installed in parallel; start with the slowest.
        "harness": lambda _: pypi.harness(),
        **{part: make for brought in _of_engines() for part, make in brought.parts.items()},
        "mysql": lambda _: debian.mysql(),
        "kafka": central.kafka,
        "registry": central.registry,
        "nginx": lambda _: debian.nginx(),
        "redis": lambda _: debian.redis(),
        "debezium": java.debezium,
        "loadgen": lambda _: pypi.loadgen(),
    }


@cache
def _on_request() -> Mapping[str, Make]:
    return {
        "tests": lambda _: pypi.tests(),
        "serve": lambda _: pypi.serve(),
        "base": lambda _: base.base(),
        "compose": lambda _: debian.compose(),
        **{part: make for brought in _of_engines() for part, make in brought.on_request.items()},
    }


def _of_engines() -> list[Installs]:
    return [module.INSTALLS for module in plugins.of_all("recipe").values()]
