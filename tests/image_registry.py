"""A real registry of images for tests, from Debian's package, unpacked."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from racetrack.install import apt, debian
from racetrack.install.ensure import ensure_recipes
from racetrack.install.recipe import Recipe, Site
from racetrack.stack import net
from tests.ports import free_ports
from tests.servers import running

PACKAGE = "docker-registry"
PROGRAM = f"usr/bin/{PACKAGE}"
CONFIGURATION = """
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@contextmanager
def image_registry(folder: Path) -> Iterator[str]:
    """Start the registry; yield its host and port; stop it at the end."""
    (part,) = ensure_recipes([_recipe()], print).values()
    (port,) = free_ports(1)
    configuration = folder / "registry.yml"
    configuration.write_text(CONFIGURATION.format(folder=folder / "images", port=port))
    command = [str(part / PROGRAM), "serve", str(configuration)]
    with running([command], folder, lambda: net.request(f"http://127.0.0.1:{port}/v2/")):
        yield f"127.0.0.1:{port}"


def _recipe() -> Recipe:
    _, suite = apt.host()
    packages = apt.Packages(PACKAGE, suite, (PACKAGE,), re.compile(f"^{PACKAGE}$"))
    return debian.unpacked(packages, "Registry of images, for tests (unpacked)", 5, _version)


def _version(site: Site) -> str:
    program = site.folder / PROGRAM
    return apt.installed_version(site, PACKAGE, program, "--version", pattern=r" v?(\S+)$")
