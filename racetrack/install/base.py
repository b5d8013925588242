"""Base of all images that Racetrack builds: a Debian as a tar file, made by debootstrap.

It contains the runtimes of the languages in which services are written, so the images share these
on disk. This machine downloads everything, so the images do not need this machine's mirror or
certificates.
"""

import os
import shutil
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install import apt
from racetrack.install.recipe import Recipe, Site

SUITE = "bookworm"
PACKAGES = (
    "python3",  # starts the services
    "python3-venv",
    "libpython3.11",  # for a Java that calls Python
    "openjdk-17-jre-headless",
    "pypy3",  # the load generator
    "postgresql-client",  # psql, for a Materialize that runs elsewhere
)
# Files that no program in the images reads.
NOT_NEEDED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
    "debootstrap",
    # These describe the machine that builds the image.
    "etc/hostname",
    "etc/resolv.conf",
)
SOURCES = f"deb http://deb.debian.org/debian {SUITE} main\n"
TAR = "rootfs.tar"


def base() -> Recipe:
    """Return the recipe of `rootfs.tar`: a Debian with Python, Java, PyPy, and psql."""
    return Recipe(
        part="base",
        label=SUITE,
        why=f"Debian {SUITE} with Python, Java and PyPy, for images (debootstrap)",
        download_mb=220,
        needs=("debootstrap", "apt-get"),
        content=("\n".join((*PACKAGES, *NOT_NEEDED)).encode(),),
        build=_build,
    )


def _build(site: Site) -> str:
    if os.geteuid() != 0:
        raise SetupError("base: debootstrap needs root. Call it again with sudo.")
    root = site.folder / "root"
    packed = site.scratch / "packages"
    packed.mkdir()
    site.run(
        "debootstrap",
        "--variant=minbase",
        f"--keyring={apt.DEBIAN_KEYRING}",
        f"--cache-dir={packed}",
        f"--include={','.join(PACKAGES)}",
        SUITE,
        root,
        apt.mirror(site),
        doing="making a Debian",
    )
    for name in NOT_NEEDED:
        _empty(root / name)
    (root / "etc/apt/sources.list").write_text(SOURCES)
    site.run("tar", "--numeric-owner", "-cf", site.folder / TAR, "-C", root, ".", doing="packing")
    version = (root / "etc/debian_version").read_text().strip()
    shutil.rmtree(root)
    return version


def _empty(path: Path) -> None:
    """Remove a file, or the content of a folder. Packages may expect the folder, so it stays."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path)
    path.mkdir()
