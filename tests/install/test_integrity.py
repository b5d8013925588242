"""Tests that damaged files of installed parts are found after a failure, named, and replaced."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from racetrack import integrity
from racetrack.install import cache
from racetrack.install.ensure import ensure_recipes
from racetrack.install.recipe import Site
from racetrack.plugins import REPO
from tests.install.conftest import small_recipe

JAR = "libs/first.jar"
USE = """
import os, pathlib, sys
from racetrack import integrity
with integrity.in_use(pathlib.Path(sys.argv[1])):
    """


def two_jars(site: Site) -> str:
    (site.folder / "libs").mkdir()
    for name in ("first", "second"):
        (site.folder / "libs" / f"{name}.jar").write_text(name * 1000)
    return "1.0"


RECIPE = small_recipe(two_jars)


@pytest.fixture
def part(cache_root: Path) -> Path:
    """Return the folder of an installed part."""
    return ensure_recipes([RECIPE], print)["small"]


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_damaged_part_is_named_with_its_file_and_installed_again(part: Path, damage: str) -> None:
    cache.packages().mkdir()
    (part / "made-later").write_text("more")
    assert integrity.examine(part) == "" and integrity.is_usable(part)
    if damage == "missing":
        (part / JAR).unlink()
    else:
        os.truncate(part / JAR, 2500)
    message = integrity.examine(part)
    assert part.name in message and JAR in message and "second.jar" not in message
    lines: list[str] = []
    assert ensure_recipes([RECIPE], lines.append)["small"] == part
    assert any(part.name in line and "damaged" in line for line in lines)
    assert (part / JAR).read_text() == "first" * 1000
    assert integrity.examine(part) == ""
    # Files of the part may have been hard links to these packages.
    assert not cache.packages().exists()


def test_a_process_that_is_killed_leaves_a_mark(part: Path) -> None:
    for end, is_killed in (("sys.exit(1)", False), ("os.kill(os.getpid(), 9)", True)):
        subprocess.run([sys.executable, "-c", USE + end, part], cwd=REPO, check=False)
        assert integrity.was_killed(part) is is_killed
    assert not integrity.was_killed(part)
