"""Tests that the installed Deephaven server and its client have the same version."""

from racetrack.engines.dh.recipe import LOCK
from racetrack.install import pypi
from racetrack.install.versions import read_versions


def test_client_and_server_are_the_version_of_env() -> None:
    version = read_versions(environ={})["DEEPHAVEN_VERSION"]
    assert pypi.pinned(LOCK, "deephaven-server") == version
    assert pypi.pinned(pypi.HARNESS_LOCK, "pydeephaven") == version
    assert pypi.pinned(pypi.HARNESS_LOCK, "pydeephaven-ticking") == version
