"""Fixtures: `docker compose` without an engine, since it only reads files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compose_files import PUBLISHED, described

Program = Callable[[str], None]


@pytest.fixture(scope="session")
def services() -> dict[str, Any]:
    """Return the services of the published stack."""
    found: dict[str, Any] = described(*PUBLISHED)["services"]
    return found


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return a function that puts a script on PATH as `docker`."""

    def make(text: str) -> None:
        (tmp_path / "docker").write_text(text)
        (tmp_path / "docker").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make
