"""Facts about the published images, from image_facts.yaml."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

Value = TypeVar("Value")
FILE = Path(__file__).with_suffix(".yaml")


@dataclass(frozen=True)
class Fact(Generic[Value]):
    """A value, and the public source that states it: `repository path commit-or-tag`."""

    value: Value
    source: str


@dataclass(frozen=True)
class Flags:
    """Arguments of the JVM: the content of a variable, or the start script's default if it is
    unset."""

    variable: str = ""
    otherwise: str = ""


@dataclass(frozen=True)
class Image:
    """An image, by its name without a tag."""

    name: str
    holds_for: str  # beginning of the tags that its facts hold for
    programs: Fact[frozenset[str]]  # used by this repository
    data: Fact[str] | None = None  # the folder of its data
    variables: Fact[frozenset[str]] | None = None  # used by the image; may end in *
    health: Fact[str] | None = None  # the image's own health check
    jvm: Fact[Sequence[Flags]] | None = None  # in the order of the start script
    defaults: Mapping[str, Fact[str]] = field(default_factory=dict)


def _fact(described: Mapping[str, Any], make: Any = str) -> Fact[Any]:
    return Fact(make(described["value"]), described["source"])


def _image(name: str, described: Mapping[str, Any]) -> Image:
    makers = {
        "programs": frozenset,
        "data": str,
        "variables": frozenset,
        "health": str,
        "jvm": lambda value: tuple(Flags(**each) for each in value),
    }
    facts: dict[str, Any] = {
        key: _fact(described[key], make) for key, make in makers.items() if key in described
    }
    defaults = {key: _fact(each) for key, each in described.get("defaults", {}).items()}
    return Image(name, described["holds_for"], defaults=defaults, **facts)


IMAGES: Mapping[str, Image] = {
    name: _image(name, described) for name, described in yaml.safe_load(FILE.read_text()).items()
}
DEBEZIUM = IMAGES["quay.io/debezium/connect"]
MYSQL = IMAGES["mysql"]
PYPY = IMAGES["pypy"]
