"""The parts by name, and the recipe of each."""

from collections.abc import Callable, Mapping

from racetrack.errors import SetupError
from racetrack.install import central, debian, pypi
from racetrack.install.recipe import Recipe

_BY_NAME: dict[str, Callable[[Mapping[str, str]], Recipe]] = {
    # The slowest first: side by side, the rest hides behind it.
    "harness": lambda _: pypi.harness(),
    "deephaven": lambda versions: pypi.deephaven(versions["DEEPHAVEN_VERSION"]),
    "mysql": lambda _: debian.mysql(),
    "kafka": central.kafka,
    "registry": central.registry,
    "debezium": central.debezium,
    "loadgen": lambda _: pypi.loadgen(),
}
PARTS = tuple(_BY_NAME)


def recipe(part: str, versions: Mapping[str, str]) -> Recipe:
    """The recipe of a part, for the versions as `read_versions` gives them.

    Raises:
        SetupError: no such part.
    """
    if part not in _BY_NAME:
        raise SetupError(f"There is no part {part!r}. The parts are: {', '.join(PARTS)}.")
    return _BY_NAME[part](versions)
