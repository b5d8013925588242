"""Fixtures: a simulated cluster."""

import os
from pathlib import Path

import pytest

from tests.stack.kubernetes.cluster import Cluster


@pytest.fixture
def kubectl_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which a `kubectl` is found."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def cluster(kubectl_folder: Path) -> Cluster:
    return Cluster(kubectl_folder)
