"""Tests of a real Redis, started as the stack does."""

from pathlib import Path

from racetrack import install
from racetrack.config import load
from racetrack.stack.service import Context, find_service
from tests.redis_server import running_redis


def test_it_keeps_nothing_and_answers_anybody_without_a_password(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        rows = server.client.config_get("*")
        assert (rows["save"], rows["appendonly"]) == ("", "no")
        assert (rows["bind"], rows["protected-mode"]) == ("127.0.0.1", "no")
        server.client.set("a", "b")
        parts = install.ensure(["redis"], install.read_versions(), print)
        version = server.client.info("server")["redis_version"]
        context = Context(load(), tmp_path, parts)
        assert find_service("redis").versions(context) == {"redis": version}
        server.process.terminate()
        assert server.process.wait(20) == 0
        assert {path.name for path in tmp_path.iterdir()} == {"redis.log"}
