"""How facts on a published image are written down: what is so, where it was read, whether it was
run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")

# In docs/measured.md, under "The compose file on stand-ins of the published images":
STAND_IN = "a stand-in built by that file"


@dataclass(frozen=True)
class Source:
    """A file of a public repository on GitHub, as of a commit or a tag."""

    repository: str
    path: str
    at: str
    packaged_as: str = ""  # how docs/measured.md names what was not taken from there, but packaged


@dataclass(frozen=True)
class Fact(Generic[Value]):
    """Something that is so, and how that is known."""

    value: Value
    source: Source
    ran: str = ""  # on what it was run; empty: it was read only


@dataclass(frozen=True)
class User:
    """Whom the image's program runs as. One that starts as root makes its data folder its own."""

    name: str
    uid: int
    starts_as_root: bool


@dataclass(frozen=True)
class Flags:
    """Some of the JVM's arguments: what a variable holds, or else what the start script has."""

    variable: str
    otherwise: str = ""


@dataclass(frozen=True)
class Image:
    """One image, by its name without a tag. Its lines are taken to hold for tags that begin as
    `holds_for` does; some could only be read in a neighbouring version, which `at` says."""

    name: str
    holds_for: str
    programs: Fact[frozenset[str]]  # those that we call, not all that it has
    user: Fact[User] | None = None
    data: Fact[str] | None = None  # where what it keeps is
    variables: Fact[frozenset[str]] | None = None  # those that it heeds; may end in *
    health: Fact[str] | None = None  # the check that it comes with
    jvm: Fact[Sequence[Flags]] | None = None  # in the order in which its start script has them
    defaults: Mapping[str, Fact[str]] = field(default_factory=dict)  # those that matter here


def names(text: str) -> frozenset[str]:
    """Words, as a set."""
    return frozenset(text.split())
