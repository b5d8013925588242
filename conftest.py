"""What all tests need, those of engines too: signals as a terminal's child has them, a folder for
runs that is not the user's, and for some a Docker engine."""

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

# For whatever runs the real stack: here, and in the tests of engines.
pytest_plugins = ["tests.e2e.side_by_side", "tests.e2e.shared"]


def pytest_configure() -> None:
    """A background job or nohup has them ignored, and every child would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # A Docker engine that happens to answer changes no test. Tests of containers ask for them.
    os.environ |= {"RUNTIME": "native", "AIRGAP": "false"}
    # Most runs are not about the verdict. Those that are say so.
    os.environ["DECIDE_WITHIN"] = "0"
    # Nor is the machine quiet while they run.
    os.environ["NOISE_GATE"] = "false"
    # How long an example takes is the machine's mood.
    hypothesis_settings.register_profile("any machine", deadline=None)
    hypothesis_settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def logs_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where all runs of these tests go, those of front doors too; the user's `logs/` stays as it
    was. pytest keeps the folder for a while."""
    users = REPO / "logs"
    before = set(users.iterdir()) if users.is_dir() else set()
    folder = tmp_path_factory.mktemp("runs", numbered=False) / "logs"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LOGS_FOLDER", str(folder))
        yield folder
    after = set(users.iterdir()) if users.is_dir() else set()
    new = sorted(path.name for path in after - before)
    assert not new, f"these tests, or somebody beside them, left in {users}: {', '.join(new)}"


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[engine.Engine]:
    """A Docker engine with compose, reached by the environment; skips where none can run."""
    with ExitStack() as closing:
        try:
            found = closing.enter_context(engine.running())
        except engine.NoEngine as error:
            pytest.skip(f"Docker can't run here: {error}")
        yield found


@pytest.fixture(scope="session")
def airgap_images(docker_engine: engine.Engine) -> None:
    """The images that docker-compose.airgap.yml names, built from what is here now."""
    build(load(), print)
