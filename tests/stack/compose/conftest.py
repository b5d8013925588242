"""Fixtures: `docker compose` without an engine, since it only reads files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import compose_files

Describe = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def compose_plugin() -> Mapping[str, str]:
    """Return the environment in which `docker compose` works."""
    return compose_files.plugin()


@pytest.fixture(scope="session")
def described(compose_plugin: Mapping[str, str]) -> Describe:
    """Return a function that returns the output of `docker compose config` for given files."""
    return compose_files.described


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that puts a script on PATH as `docker`."""

    def make(text: str) -> None:
        (tmp_path / "docker").write_text(text)
        (tmp_path / "docker").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make
