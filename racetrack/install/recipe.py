"""What a part is: why it is needed, what decides its content, and how its folder is filled."""

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
    """Where a part is being made: `folder` is filled, then renamed to `final` when complete.

    `scratch` is on the same file system and removed afterwards, with what was downloaded there.
    `tools` holds the folders of the recipe's tools.
    """

    folder: Path
    final: Path
    scratch: Path
    run: Run
    say: Say
    tools: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """One part. `build` fills `site.folder` and returns the version that is really there.

    `needs` are programs that must be on PATH (apt has them, see apt-packages.txt); `content` is
    whatever decides what the folder holds: when it changes, the part is made anew beside the old.
    `revision` is for a `build` that makes something else of the same content. `tools` are parts
    that must be there before `build` is called.
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
    """A lock file of Python packages: what it is made from (arguments of `uv pip compile`, paths
    from the repository on), and the oldest Python that it must serve."""

    file: Path
    sources: Sequence[str]
    python: str = "3.11"


@dataclass(frozen=True)
class MavenPart:
    """A part from Maven Central: its pom, the hashes of all that it brings, and the settings that
    hold its versions."""

    name: str
    pom: Path
    hashes: Path
    versions: Sequence[str]


@dataclass(frozen=True)
class Installs:
    """Parts of an engine: the `INSTALLS` of `racetrack/engines/<engine>/recipe.py`, a file that
    imports nothing but the standard library and `racetrack.install`."""

    parts: Mapping[str, Make] = field(default_factory=dict)
    # What the native runtime does without: set up only where it is asked for by name.
    on_request: Mapping[str, Make] = field(default_factory=dict)
    versions: Sequence[str] = ()  # the settings that hold them
    pypi: Sequence[PypiLock] = ()
    maven: Sequence[MavenPart] = ()
