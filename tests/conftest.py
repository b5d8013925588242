"""What all tests need: signals as a terminal's child has them, and for some a Docker engine."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from racetrack.images.build import build
from racetrack.settings import load
from tests import docker_engine as engine


def pytest_configure() -> None:
    """A background job or nohup has them ignored, and every child would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # A Docker engine that happens to answer changes no test. Tests of containers ask for them.
    os.environ |= {"RUNTIME": "native", "AIRGAP": "false"}


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
