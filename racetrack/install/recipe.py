"""The description of a part: its purpose, what determines its content, and how it is made."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

Say = Callable[[str], None]


class Run(Protocol):
    """Runs a command for a part; see `commands.Runner`."""

    def __call__(
        self,
        *argv: str | Path,
        doing: str,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> str: ...


@dataclass(frozen=True)
class Site:
    """The place where a part is made: `folder` is filled, then renamed to `final`.

    `scratch` is on the same file system and removed afterwards, with the downloads in it. `tools`
    holds the folders of the recipe's tools.
    """

    folder: Path
    final: Path
    scratch: Path
    run: Run
    say: Say
    tools: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """A part. `build` fills `site.folder` and returns the version that is in it.

    `needs` are programs that must be on PATH (see apt-packages.txt); `content` is everything that
    determines the folder's content: when it changes, a new part is made beside the old. `revision`
    changes if `build` makes something else of the same content. `tools` are parts that `build`
    uses.
    """

    part: str
    label: str
    why: str
    download_mb: int
    needs: tuple[str, ...]
    content: tuple[bytes, ...]
    build: Callable[[Site], str]
    revision: bytes = b""
    tools: tuple["Recipe", ...] = ()

    @property
    def folder_name(self) -> str:
        """`<part>-<label>-<8 hex of the content>`."""
        digest = hashlib.sha256(b"\0".join(self.content) + self.revision).hexdigest()
        return f"{self.part}-{self.label}-{digest[:8]}"


# Makes the recipe of a part, for versions as `read_versions` gives them.
Make = Callable[[Mapping[str, str]], Recipe]


@dataclass(frozen=True)
class PypiLock:
    """A lock file of Python packages: its sources (arguments of `uv pip compile`, paths relative to
    the repository), and the oldest Python that it supports."""

    file: Path
    sources: Sequence[str]
    python: str = "3.11"


@dataclass(frozen=True)
class MavenPart:
    """A part from Maven Central: its pom, the hashes of all its files, and the settings that hold
    its versions."""

    name: str
    pom: Path
    hashes: Path
    versions: Sequence[str]


@dataclass(frozen=True)
class Installs:
    """The parts of an engine: the `INSTALLS` of its `recipe.py`, a file that imports only the
    standard library and `racetrack.install`."""

    parts: Mapping[str, Make] = field(default_factory=dict)
    # Parts that the native runtime does not need: installed only by name.
    on_request: Mapping[str, Make] = field(default_factory=dict)
    versions: Sequence[str] = ()  # the settings that hold them
    pypi: Sequence[PypiLock] = ()
    maven: Sequence[MavenPart] = ()
