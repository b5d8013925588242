"""Recipes of parts from Debian's or Ubuntu's archive, unpacked into folders of their own.

Debian has MySQL in sid only. Packages of sid can't be installed on a stable system, so they are
unpacked together with their C library and run with their own dynamic loader. nginx and Redis are
unpacked because installing their packages would start system services.

`base` is another kind of part: a whole Debian, made by debootstrap, on which all images that
Racetrack builds are based. It contains the runtimes of the languages in which services are written,
so the images share these on disk. This machine downloads everything, so the images do not need this
machine's mirror or certificates.
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install import apt
from racetrack.install.recipe import Recipe, Site

MYSQL_SERVERS = ("mysql-server-core", "mysql-server-core-8.4", "mysql-server-core-8.0")
# Dependencies that the server links to. The others (perl, debconf, dpkg) only serve installation.
MYSQL_NEEDS = re.compile(r"^(mysql-|lib(?!perl)|zlib1g)")
MYSQL_LIBRARIES = ("usr/lib/mysql/private",)
# Command-line tools, and all plugins except the one that the server always loads.
MYSQL_NEVER_READ = (
    "usr/bin/*",
    "usr/lib/mysql/plugin/[!c]*",
    "usr/lib/mysql/plugin/component_[!r]*",
)
NGINX_NEEDS = re.compile(
    r"^(nginx(-core|-light)?|libc6|libcrypt1|libpcre[\d-]+|libssl\d.*|zlib1g)$"
)
# redis-server is a link to a program of redis-tools.
REDIS_NEEDS = re.compile(r"^(redis-|lua-|lib(?!.*perl))")
# Ubuntu's package, then Debian's. In Debian 12 docker-compose is version 1, so take it from trixie.
COMPOSE = ("docker-compose-v2", "docker-compose")
COMPOSE_SUITE = "trixie"
COMPOSE_PLUGIN = "usr/libexec/docker/cli-plugins/docker-compose"
# Debian 12 has kubectl 1.20, which is too old.
KUBECTL_SUITE = "trixie"
KUBECTL_NEEDS = re.compile("^(kubectl|libc6)$")
KCAT_NEEDS = re.compile("^(kcat|lib(?!.*perl).*|zlib1g)$")
BASE_SUITE = "bookworm"
BASE_PACKAGES = (
    "python3",  # starts the services
    "python3-venv",
    "libpython3.11",  # for Java programs that call Python
    "openjdk-17-jre-headless",
    "pypy3",  # the load generator
    "postgresql-client",  # psql, for a Materialize that runs elsewhere
)
# Files that no program in the images reads.
NOT_IN_BASE = (
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
BASE_SOURCES = f"deb http://deb.debian.org/debian {BASE_SUITE} main\n"
BASE_TAR = "rootfs.tar"


def mysql(release_file: Path = apt.OS_RELEASE) -> Recipe:
    """Return the recipe of `usr/sbin/mysqld` with its libraries and loader."""
    distribution, release = apt.host(release_file)
    suite = "sid" if distribution == "debian" else release
    never_read = (*apt.DOCUMENTATION, *MYSQL_NEVER_READ)
    packages = apt.Packages("mysql", suite, MYSQL_SERVERS, MYSQL_NEEDS, never_read)
    why = f"MySQL, the workload's database ({distribution} {suite}, unpacked)"
    return unpacked(packages, why, 50, _mysql_version)


def nginx() -> Recipe:
    """Return the recipe of `usr/sbin/nginx` with its libraries and loader."""
    distribution, suite = apt.host()
    packages = apt.Packages("nginx", suite, ("nginx",), NGINX_NEEDS)
    why = f"nginx, in front of the schema registry ({distribution} {suite}, unpacked)"
    return unpacked(packages, why, 16, _nginx_version)


def redis() -> Recipe:
    """Return the recipe of `usr/bin/redis-server` with its libraries and loader."""
    distribution, suite = apt.host()
    packages = apt.Packages("redis", suite, ("redis-server",), REDIS_NEEDS)
    why = f"Redis, where an engine writes its views ({distribution} {suite}, unpacked)"
    return unpacked(packages, why, 11, _redis_version)


def compose() -> Recipe:
    """Return the recipe of Docker's compose plugin, at `COMPOSE_PLUGIN`."""
    distribution, release = apt.host()
    suite = COMPOSE_SUITE if distribution == "debian" else release
    needed = re.compile("^docker-compose(-v2)?$")
    packages = apt.Packages("compose", suite, COMPOSE, needed)
    why = f"the compose plugin of Docker's command line ({distribution} {suite}, unpacked)"
    return unpacked(packages, why, 25, _compose_version)


def kubectl() -> Recipe:
    """Return the recipe of `bin/kubectl`, for images."""
    return _command(apt.Packages("kubectl", KUBECTL_SUITE, ("kubectl",), KUBECTL_NEEDS))


def kcat() -> Recipe:
    """Return the recipe of `bin/kcat`, for images."""
    return _command(apt.Packages("kcat", BASE_SUITE, ("kcat",), KCAT_NEEDS))


def _command(packages: apt.Packages) -> Recipe:
    """Return the recipe of `bin/<part>`, which starts the program of this name with the unpacked
    loader and libraries, in whatever folder the part is."""
    part = packages.part

    def version(site: Site) -> str:
        loader, option, path, program = apt.own_loader(site.folder, f"usr/bin/{part}")
        here = str(site.folder)
        words = [loader, option, path, program]
        command = " ".join(f'"{word}"' for word in words).replace(here, "$here")
        script = site.folder / "bin" / part
        script.parent.mkdir(exist_ok=True)
        script.write_text(
            f'#!/bin/sh\nhere=$(dirname "$(dirname "$(readlink -f "$0")")")\nexec {command} "$@"\n'
        )
        script.chmod(0o755)
        flags = ("version", "--client") if part == "kubectl" else ("-V",)
        return apt.installed_version(site, part, script, *flags, pattern=r"[Vv]ersion:? v?(\S+)")

    why = f"{part}, for the image of the harness (debian {packages.suite}, unpacked)"
    return unpacked(packages, why, 25, version)


def unpacked(
    packages: apt.Packages, why: str, download_mb: int, version: Callable[[Site], str]
) -> Recipe:
    """Return the recipe of a part made of unpacked packages; `version` finds its version."""

    def build(site: Site) -> str:
        apt.unpack(site, packages)
        return version(site)

    return Recipe(
        part=packages.part,
        label=packages.suite,
        why=why,
        download_mb=download_mb,
        needs=("apt-get", "dpkg-deb"),
        content=(),
        build=build,
        revision=b"2",
    )


def _mysql_version(site: Site) -> str:
    server = apt.own_loader(site.folder, "usr/sbin/mysqld", *MYSQL_LIBRARIES)
    arguments = ("--no-defaults", "--version")
    return apt.installed_version(site, "mysqld", *server, *arguments, pattern=r"Ver (\S+)")


def _nginx_version(site: Site) -> str:
    server = apt.own_loader(site.folder, "usr/sbin/nginx")
    # nginx prints its version to standard error.
    shell = ("sh", "-c", '"$@" 2>&1', "sh")
    arguments = ("-e", "stderr", "-v")
    return apt.installed_version(site, "nginx", *shell, *server, *arguments, pattern=r".*/(.*)$")


def _redis_version(site: Site) -> str:
    server = apt.own_loader(site.folder, "usr/bin/redis-server")
    return apt.installed_version(site, "redis-server", *server, "--version", pattern=r"v=(\S+)")


def _compose_version(site: Site) -> str:
    plugin = site.folder / COMPOSE_PLUGIN
    return apt.installed_version(site, "plugin", plugin, "version", "--short", pattern=r"(.*)")


def base() -> Recipe:
    """Return the recipe of `rootfs.tar`: a Debian with Python, Java, PyPy, and psql."""
    return Recipe(
        part="base",
        label=BASE_SUITE,
        why=f"Debian {BASE_SUITE} with Python, Java and PyPy, for images (debootstrap)",
        download_mb=220,
        needs=("debootstrap", "apt-get"),
        content=("\n".join((*BASE_PACKAGES, *NOT_IN_BASE)).encode(),),
        build=_build_base,
    )


def _build_base(site: Site) -> str:
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
        f"--include={','.join(BASE_PACKAGES)}",
        BASE_SUITE,
        root,
        apt.mirror(site),
        doing="making a Debian",
    )
    for mounted in ("proc", "sys"):  # debootstrap goes on if it can't unmount them
        if (root / mounted).is_mount():
            site.run("umount", "--lazy", root / mounted, doing="unmounting")
    for name in NOT_IN_BASE:
        _empty(root / name)
    (root / "etc/apt/sources.list").write_text(BASE_SOURCES)
    site.run(
        "tar", "--numeric-owner", "-cf", site.folder / BASE_TAR, "-C", root, ".", doing="packing"
    )
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
