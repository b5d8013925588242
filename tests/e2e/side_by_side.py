"""Two stacks beside each other: what each worker of xdist needs of its own, and which tests share
one. Most end-to-end tests wait for most of their time, so that two at a time take less."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from racetrack.config import load
from racetrack.machine_lock import private_folder

PORTS_APART = 100
# Files of which all tests use containers.
CONTAINERS = re.compile(r"e2e/test_compose\w*\.py|/test_compose_e2e\.py|images/test_built\.py")


def worker_number() -> int:
    """0 for the first worker, and where there is one process only."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Tests of one file share what they set up; all in containers share one Docker engine."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "containers" if CONTAINERS.search(file) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """`--dist loadfile`, and what is in containers together."""
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """The README's experiment is one that measures."""
    if "experiment" in getattr(item, "fixturenames", ()):
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
        own = _folder_of_its_own(number)
        os.environ["TMPDIR"] = tempfile.tempdir = str(own)
        os.environ["MACHINE_LOCK"] = str(own / "machine.lock")


def _folder_of_its_own(number: int) -> Path:
    """Beside that of the first worker. A database that runs as another user has to get through it,
    but can't look into it; where the folder is another user's, this fails."""
    folder = private_folder()
    own = folder.with_name(f"{folder.name}-worker-{number}")
    own.mkdir(mode=0o711, exist_ok=True)
    own.chmod(0o711)
    return own
