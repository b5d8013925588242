"""Two stacks side by side: each xdist worker's own stack, and the tests that share one. Most
end-to-end tests mostly wait, so running two at a time takes less time."""

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
# Files in which all tests use containers.
CONTAINERS = re.compile(r"e2e/test_compose\w*\.py|/test_compose_e2e\.py|images/test_built\.py")


def worker_number() -> int:
    """Return the worker's number; 0 for the first worker, or if there is only one process."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Keeps tests of one file together, as they share fixtures, and all tests in containers, as
    they share one Docker engine."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "containers" if CONTAINERS.search(file) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Let `--dist loadfile` also keep tests in containers together."""
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests of this folder. Run those of the README's experiment alone, because it
    measures."""
    if item.path.parent == Path(__file__).parent:
        item.add_marker(pytest.mark.e2e)
    if "experiment" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.alone)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Give a second worker of end-to-end tests its own stack name, ports and machine lock."""
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
    """Return this worker's own folder, beside that of the first worker. Other users, such as a
    database's, must be able to enter it, but can't list it. Fail if it belongs to another user."""
    folder = private_folder()
    own = folder.with_name(f"{folder.name}-worker-{number}")
    own.mkdir(mode=0o711, exist_ok=True)
    own.chmod(0o711)
    return own
