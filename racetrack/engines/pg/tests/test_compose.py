"""Tests of PostgreSQL in containers: its services, and the content of the feeder's image."""

import subprocess
import sys
from pathlib import Path

import pytest

from racetrack.config import REPO, load
from racetrack.engines.pg.services import postgres
from racetrack.stack.service import Context
from tests.compose_files import dockerfile_of, service

pytestmark = pytest.mark.slow

WHAT_IT_IMPORTS = """
import sys, racetrack.engines.pg.feed.consumer
for name, module in sys.modules.items():
    if name.partition(".")[0] == "racetrack":
        print(module.__file__)
"""


def test_it_is_set_up_as_natively(tmp_path: Path) -> None:
    options = dict(
        option.removeprefix("-c").split("=") for option in service("postgres")["command"]
    )
    native = postgres.configuration(Context(load(), tmp_path, {}))
    of_this_machine = {"listen_addresses", "port", "unix_socket_directories"}
    assert options == {name: v for name, v in native.items() if name not in of_this_machine}


def test_the_feeder_s_published_image_is_given_all_that_it_imports() -> None:
    described = service("pgfeed")
    ignored = dockerfile_of(described).with_name("Dockerfile.dockerignore").read_text()
    listed = {
        path
        for line in ignored.splitlines()
        if line.startswith("!")
        for path in Path(described["build"]["context"]).glob(line.removeprefix("!"))
    }
    argv = [sys.executable, "-c", WHAT_IT_IMPORTS]
    done = subprocess.run(argv, cwd=REPO, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {Path(line) for line in done.stdout.splitlines()} <= listed
