"""A real Redis as the stack starts it."""

from pathlib import Path

import psutil

from racetrack import install
from racetrack.config import load
from racetrack.stack.service import Context, find_service
from tests.redis_server import running_redis


def test_it_keeps_nothing_and_answers_anybody_without_a_password(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        held = server.client.config_get("*")
        assert (held["save"], held["appendonly"]) == ("", "no")
        assert (held["bind"], held["protected-mode"]) == ("127.0.0.1", "no")
        server.client.set("a", "b")
        server.process.terminate()
        assert server.process.wait(20) == 0
        assert {path.name for path in tmp_path.iterdir()} == {"redis.log"}


def test_its_environment_stays_by_which_a_stack_finds_its_processes(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        assert psutil.Process(server.process.pid).environ()["PATH"]


def test_it_says_its_version(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        version = server.client.info("server")["redis_version"]
        parts = install.ensure(["redis"], install.read_versions(), print)
        context = Context(load(), tmp_path, parts)
        assert find_service("redis").versions(context) == {"redis": version}
