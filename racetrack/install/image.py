"""The description of an image that is built here (racetrack/images). Standard library only."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Image:
    """An image, called like its service in the compose files. Paths begin at the repository.

    An engine's images are the `IMAGES` of its `airgap.py`. Relocatable parts are copied from the
    cache (`parts`); a Python environment is installed inside by the same recipe (`installs`).
    """

    name: str
    dockerfile: Path | None = None  # None: images/service.Dockerfile
    parts: Sequence[str] = ()
    installs: str = ""  # a part
    locks: Sequence[str] = ()  # files that determine that part's content,
    versions: Sequence[str] = ()  # and settings
    runs: Sequence[str] = ()  # native services, whose code is in the image
    prepare: Sequence[str] = ()  # run once during the build; the last is one of `runs`
    only_to_prepare: Sequence[str] = ()  # parts removed after `prepare`
    files: Sequence[str] = ()  # other files and folders of the repository
    packages: Sequence[str] = ()  # Debian packages that the base image needs for it
