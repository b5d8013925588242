"""The parts by name, and the recipe of each."""

from collections.abc import Mapping

from racetrack import plugins
from racetrack.errors import SetupError
from racetrack.install import base, central, debian, pypi
from racetrack.install.recipe import Installs, Make, Recipe


def _of_engines() -> list[Installs]:
    return [module.INSTALLS for module in plugins.of_all("recipe").values()]


_BY_NAME: dict[str, Make] = {
    # The slowest first: side by side, the rest hides behind it.
    "harness": lambda _: pypi.harness(),
    **{part: make for brought in _of_engines() for part, make in brought.parts.items()},
    "mysql": lambda _: debian.mysql(),
    "kafka": central.kafka,
    "registry": central.registry,
    "nginx": lambda _: debian.nginx(),
    "debezium": central.debezium,
    "loadgen": lambda _: pypi.loadgen(),
}
PARTS = tuple(_BY_NAME)
# What the native runtime does without: set up only where it is asked for by name.
_ON_REQUEST: dict[str, Make] = {
    "serve": lambda _: pypi.serve(),
    "base": lambda _: base.base(),
    "compose": lambda _: debian.compose(),
    **{part: make for brought in _of_engines() for part, make in brought.on_request.items()},
}
ON_REQUEST = tuple(_ON_REQUEST)


def recipe(part: str, versions: Mapping[str, str]) -> Recipe:
    """The recipe of a part, for the versions as `read_versions` gives them.

    Raises:
        SetupError: no such part.
    """
    found = {**_BY_NAME, **_ON_REQUEST}.get(part)
    if found is None:
        parts = ", ".join((*PARTS, *ON_REQUEST))
        raise SetupError(f"There is no part {part!r}. The parts are: {parts}.")
    return found(versions)
