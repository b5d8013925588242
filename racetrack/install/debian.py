"""Recipes of parts from Debian's or Ubuntu's archive, unpacked into folders of their own.

Debian has MySQL in sid only. Packages of sid can't be installed on a stable system, so they are
unpacked together with their C library and run with their own dynamic loader. nginx and Redis are
unpacked because installing their packages would start system services.
"""

import re
from collections.abc import Callable
from pathlib import Path

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
