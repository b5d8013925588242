"""Tests of PostgreSQL in containers: its services, and the content of the feeder's images."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from racetrack.config import REPO, load
from racetrack.engines.pg.recipe import FEED
from racetrack.engines.pg.services import postgres
from racetrack.images.context import BuildContext
from racetrack.stack.service import Context
from tests.compose_files import dockerfile_of, service

pytestmark = pytest.mark.slow

WHAT_IT_IMPORTS = """
import sys, racetrack.engines.pg.feed.consumer
for name, module in sys.modules.items():
    if name.partition(".")[0] == "racetrack":
        print(module.__file__)
"""


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Return a context for the configuration of native services. Nothing is started."""
    return Context(load(), tmp_path, {})


def test_it_is_set_up_as_natively(context: Context) -> None:
    options = dict(
        option.removeprefix("-c").split("=") for option in service("postgres")["command"]
    )
    native = postgres.configuration(context)
    of_this_machine = {"listen_addresses", "port", "unix_socket_directories"}
    assert options == {name: v for name, v in native.items() if name not in of_this_machine}


def imported(folder: Path) -> set[Path]:
    """Return the modules of the harness that the feeder imports in a folder with its files."""
    argv = [sys.executable, "-c", WHAT_IT_IMPORTS]
    done = subprocess.run(argv, cwd=folder, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {Path(line) for line in done.stdout.splitlines()}


def test_the_feeder_s_published_image_is_given_all_that_it_imports() -> None:
    described = service("pgfeed")
    ignored = dockerfile_of(described).with_name("Dockerfile.dockerignore").read_text()
    listed = {
        path
        for line in ignored.splitlines()
        if line.startswith("!")
        for path in Path(described["build"]["context"]).glob(line.removeprefix("!"))
    }
    assert imported(REPO) <= listed


def test_the_feeder_in_an_image_that_is_made_here_is_whole(tmp_path: Path) -> None:
    made = BuildContext(REPO / "images/service.Dockerfile")
    made.files(REPO, FEED)
    with made.tar() as file, tarfile.open(fileobj=file) as archive:
        archive.extractall(tmp_path, filter="data")
    assert all(path.is_relative_to(tmp_path) for path in imported(tmp_path))
