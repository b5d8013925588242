"""Two stacks beside each other: what each worker of xdist needs of its own, and which tests share
one. Most end-to-end tests wait for most of their time, so that two at a time take less."""

import os
import tempfile

import pytest

from racetrack.machine_lock import lock_folder
from racetrack.settings import load

PORTS_APART = 100


def worker_number() -> int:
    """0 for the first worker, and where there is one process only."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.hookimpl(tryfirst=True)  # before any is left out by its marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file share what they set up; all that use containers share one Docker engine."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        group = "containers" if "docker_engine" in fixtures else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
        if "experiment" in fixtures:
            item.add_marker(pytest.mark.alone)


def pytest_collection_finish(session: pytest.Session) -> None:
    """A second worker that runs end-to-end tests only gets a stack name, ports and a machine lock
    of its own."""
    number = worker_number()
    if number and all(item.get_closest_marker("e2e") for item in session.items):
        settings = load()
        for name, value in settings.model_dump().items():
            if name.endswith("_port"):
                os.environ[name.upper()] = str(value + number * PORTS_APART)
        os.environ["STACK_NAME"] = f"{settings.stack_name}-{number}"
        own = lock_folder() / f"worker-{number}"
        own.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = str(own)
