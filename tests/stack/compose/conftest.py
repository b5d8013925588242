"""`docker compose` without an engine: it reads files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import compose_files

Describe = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def compose_plugin() -> Mapping[str, str]:
    """The environment in which `docker compose` works."""
    return compose_files.plugin()


@pytest.fixture(scope="session")
def described(compose_plugin: Mapping[str, str]) -> Describe:
    """The output of `docker compose config` for some files and variables."""
    return compose_files.described


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes `docker` be this script."""

    def make(text: str) -> None:
        (tmp_path / "docker").write_text(text)
        (tmp_path / "docker").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make
