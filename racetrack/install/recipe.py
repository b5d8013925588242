"""Recipe of a part (an installed component): its purpose, its inputs, and how to make it."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from racetrack.install.commands import Runner, Say


@dataclass(frozen=True)
class Site:
    """Folders and functions with which `Recipe.build` makes a part.

    `build` fills `folder`, which is then renamed to `final`. `scratch`, on the same file system, is
    for downloads and is removed afterwards. `tools` maps the recipe's tools to their folders.
    """

    folder: Path
    final: Path
    scratch: Path
    run: Runner
    say: Say
    tools: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """Recipe of one part. `build` fills `site.folder` and returns the installed version.

    `needs` are programs that must be on PATH (see apt-packages.txt). `tools` are parts that `build`
    uses. `content` is all input of `build`: if it changes, a new folder is made next to the old
    one. Change `revision` when `build` makes something else from the same content.
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
        """Name of the part's folder: `<part>-<label>-<8 hexadecimal digits of the recipe's
        hash>`."""
        digest = hashlib.sha256(b"\0".join(self.content) + self.revision).hexdigest()
        return f"{self.part}-{self.label}-{digest[:8]}"


# Function that makes the recipe of a part from the versions that `read_versions` returns.
Make = Callable[[Mapping[str, str]], Recipe]


@dataclass(frozen=True)
class PypiLock:
    """A lock file of Python packages.

    `sources` are arguments of `uv pip compile`, with paths relative to the repository; `python` is
    the oldest Python that the lock supports.
    """

    file: Path
    sources: Sequence[str]
    python: str = "3.11"


@dataclass(frozen=True)
class MavenPart:
    """A part from Maven Central: its pom, a file with the hashes of all its files, and the names of
    the settings that contain its versions."""

    name: str
    pom: Path
    hashes: Path
    versions: Sequence[str]


@dataclass(frozen=True)
class Image:
    """Image that racetrack/images builds, with the name of its service in the compose files.

    `parts` are relocatable components that are copied from the cache. `installs` is a Python
    environment that is installed during the build by its usual recipe. An image either runs native
    services (`runs`) or has a `command`. Paths are relative to the repository. An engine lists its
    images in the `INSTALLS` of its `recipe.py`.
    """

    name: str
    parts: Sequence[str] = ()
    installs: str = ""  # name of a part
    locks: Sequence[str] = ()  # lock files that determine the content of `installs`
    versions: Sequence[str] = ()  # settings that determine the content of `installs`
    runs: Sequence[str] = ()  # native services; the image contains their code
    prepare: Sequence[str] = ()  # services to run once during the build; the last is one of `runs`
    only_to_prepare: Sequence[str] = ()  # parts to remove after `prepare`
    command: str = ""  # starts a program that is not a native service
    files: Sequence[str] = ()  # other files and folders of the repository

    @property
    def dockerfile(self) -> str:
        """Name of the Dockerfile in `images/`."""
        return "program.Dockerfile" if self.command else "service.Dockerfile"


@dataclass(frozen=True)
class Installs:
    """Parts of an engine, defined as `INSTALLS` in its `recipe.py`.

    That file imports only the standard library and `racetrack.install`.
    """

    parts: Mapping[str, Make] = field(default_factory=dict)
    # Parts that the native runtime does not need: installed only if they are named.
    on_request: Mapping[str, Make] = field(default_factory=dict)
    versions: Sequence[str] = ()  # settings that contain the versions of these parts
    pypi: Sequence[PypiLock] = ()
    maven: Sequence[MavenPart] = ()
    images: Sequence[Image] = ()  # images that `./race images` builds for the engine
