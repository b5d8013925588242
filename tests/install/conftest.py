"""Fixtures: a cache folder for each test, and small recipes that use the real mechanism."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from racetrack.install.commands import Children, Runner
from racetrack.install.recipe import Recipe, Site

BACKOFF_S = (0.01, 0.02)


@pytest.fixture
def cache_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "cache"
    monkeypatch.setenv("RACETRACK_CACHE", str(root))
    return root


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a site (a recipe's folder for building) with a real runner of commands."""
    folder, final, scratch = (tmp_path / name for name in (".tmp-part", "part", "scratch"))
    for path in (folder, scratch):
        path.mkdir()
    lines: list[str] = []
    parts: dict[str, Any] = {"log": tmp_path / "log", "scratch": scratch, "children": Children()}
    runner = Runner("part", say=lines.append, backoff_s=BACKOFF_S, **parts)
    return Site(folder, final, scratch, runner, lines.append)


def said_by(site: Site) -> list[str]:
    """Return the output lines of a site."""
    return site.say.__self__  # type: ignore[attr-defined, no-any-return]


def small_recipe(build: Callable[[Site], str], content: bytes = b"1") -> Recipe:
    """Return a recipe named `small` that downloads nothing."""
    return Recipe("small", "1.0", "for tests", 0, (), (content,), build)
