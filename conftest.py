"""Fixtures and set-up for all tests, including those of engines."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from racetrack.config import REPO, load
from racetrack.images.build import build
from tests import docker_engine as engine

# Fixtures for tests that run the real stack.
pytest_plugins = ["tests.e2e.side_by_side", "tests.e2e.shared"]


def pytest_configure() -> None:
    """Reset signal handlers and settings that tests must not inherit from the shell."""
    # Background jobs and nohup ignore these signals. Tests, and the programs that they start, would
    # inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Tests must give the same result whether or not a Docker engine is running. Tests of containers
    # override this.
    os.environ |= {"RUNTIME": "native", "AIRGAP": "false"}
    # Most tests need no verdict, so their runs do not wait for one. Tests of verdicts override
    # this.
    os.environ["DECIDE_WITHIN"] = "0"
    # Other tests use the CPU, too, but must not make a test's run void.
    os.environ["NOISE_GATE"] = "false"
    # No deadline: the duration of an example depends on the machine's load.
    hypothesis_settings.register_profile("any machine", deadline=None)
    hypothesis_settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def logs_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Send the run folders of all tests to a temporary folder, which pytest keeps for a while.

    Fail if a test has added something to the user's `logs/`.
    """
    users = REPO / "logs"
    before = set(users.iterdir()) if users.is_dir() else set()
    folder = tmp_path_factory.mktemp("runs", numbered=False) / "logs"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LOGS_FOLDER", str(folder))
        yield folder
    after = set(users.iterdir()) if users.is_dir() else set()
    new = sorted(path.name for path in after - before)
    assert not new, f"these tests, or another run, created in {users}: {', '.join(new)}"


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[engine.Engine]:
    """Provide a Docker engine with compose, configured by environment variables.

    Skip the test if no engine can run here.
    """
    with ExitStack() as closing:
        try:
            found = closing.enter_context(engine.running())
        except engine.NoEngine as error:
            pytest.skip(f"Docker can't run here: {error}")
        yield found


@pytest.fixture(scope="session")
def airgap_images(docker_engine: engine.Engine) -> None:
    """Build the images of docker-compose.airgap.yml from the working copy."""
    build(load(), print)
