"""What an image holds that is built on this machine, where none can be pulled (racetrack/images).
Standard library only."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Image:
    """One image, called like its service in the compose files. An engine's stand in
    `racetrack/engines/<engine>/airgap.py`, as `IMAGES`. Paths begin at the repository.

    What can be moved is copied from the cache (`parts`); a Python environment is installed inside,
    by the same recipe (`installs`).
    """

    name: str
    dockerfile: Path | None = None  # None: images/service.Dockerfile
    parts: Sequence[str] = ()
    installs: str = ""  # a part
    locks: Sequence[str] = ()  # what decides that part's content: files,
    versions: Sequence[str] = ()  # and settings
    runs: Sequence[str] = ()  # native services, whose code is in the image
    prepare: Sequence[str] = ()  # those that are run once while it is built, the last one of `runs`
    only_to_prepare: Sequence[str] = ()  # parts that are not kept
    files: Sequence[str] = ()  # what else of the repository is in it: files, and whole folders
    packages: Sequence[str] = ()  # what the Debian below must have for it
