"""Description of an image that racetrack/images builds. Standard library only."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Image:
    """Image with the name of its service in the compose files. Paths are relative to the
    repository, except `dockerfile`.

    An engine defines its images as `IMAGES` in its `airgap.py`. `parts` are relocatable components
    that are copied from the cache; `installs` is a Python environment that is installed during the
    build by its usual recipe.
    """

    name: str
    dockerfile: Path | None = None  # None: images/service.Dockerfile
    parts: Sequence[str] = ()
    installs: str = ""  # name of a part
    locks: Sequence[str] = ()  # lock files that determine the content of `installs`
    versions: Sequence[str] = ()  # settings that determine the content of `installs`
    runs: Sequence[str] = ()  # native services; the image contains their code
    prepare: Sequence[str] = ()  # services to run once during the build; the last is one of `runs`
    only_to_prepare: Sequence[str] = ()  # parts to remove after `prepare`
    files: Sequence[str] = ()  # other files and folders of the repository
    packages: Sequence[str] = ()  # Debian packages that this image needs in the base image
