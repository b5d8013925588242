"""The parts by name, and the recipe of each."""

from collections.abc import Callable, Mapping

from racetrack.errors import SetupError
from racetrack.install import base, central, debian, flink, pypi
from racetrack.install.recipe import Recipe

_BY_NAME: dict[str, Callable[[Mapping[str, str]], Recipe]] = {
    # The slowest first: side by side, the rest hides behind it.
    "harness": lambda _: pypi.harness(),
    "deephaven": lambda versions: pypi.deephaven(versions["DEEPHAVEN_VERSION"]),
    "flink": flink.flink,
    "mysql": lambda _: debian.mysql(),
    "kafka": central.kafka,
    "registry": central.registry,
    "nginx": lambda _: debian.nginx(),
    "postgres": lambda _: debian.postgres(),
    "debezium": central.debezium,
    "loadgen": lambda _: pypi.loadgen(),
}
PARTS = tuple(_BY_NAME)
# What the native runtime does without: set up only where it is asked for by name.
_ON_REQUEST: dict[str, Callable[[Mapping[str, str]], Recipe]] = {
    "serve": lambda _: pypi.serve(),
    "pgfeed": lambda _: pypi.pgfeed(),
    "base": lambda _: base.base(),
    "compose": lambda _: debian.compose(),
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
