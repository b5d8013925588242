"""Description of an image that racetrack/images builds. Standard library only."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Image:
    """Image with the name of its service in the compose files.

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
