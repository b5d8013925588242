"""Tests that the user's environment does not change results."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack import environment
from racetrack.stack.service import Launch, spawn

HOSTILE = {
    "_JAVA_OPTIONS": "-Xmx300m",
    "JAVA_TOOL_OPTIONS": "-Duser.language=tr",
    "JDK_JAVA_OPTIONS": "-Xint",
    "KAFKA_OPTS": "-Dx=y",
    "KAFKA_HEAP_OPTS": "-Xmx1m",
    "LD_PRELOAD_OF_A_TEST": "",
    "PYTHONHOME": "/nowhere",
    "http_proxy": "http://127.0.0.1:9",
    "ALL_PROXY": "socks5://127.0.0.1:9",
    "PGOPTIONS": "--nonsense",
    "KCAT_CONFIG": "/nowhere",
}
SHOW = "import json, os; print(json.dumps([dict(os.environ), os.umask(0)]))"


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set variables that would change the behaviour of programs, and a umask that gives other users
    no access."""
    for name in environment.harmful(os.environ):
        monkeypatch.delenv(name)
    elsewhere = {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kolkata"}
    for name, value in (HOSTILE | elsewhere).items():
        monkeypatch.setenv(name, value)
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("hostile")
def test_a_service_gets_an_environment_and_a_mode_mask_of_our_own(tmp_path: Path) -> None:
    file = tmp_path / "said"
    with file.open("wb") as output:
        launch = Launch([sys.executable, "-IEc", SHOW], env={"KAFKA_BOOTSTRAP": "here"})
        assert spawn(launch, output, {"RACETRACK_STACK": "test"}).wait() == 0
    given, mask = json.loads(file.read_text())
    assert not given.keys() & HOSTILE.keys()
    ours = {"KAFKA_BOOTSTRAP": "here", "RACETRACK_STACK": "test", "PATH": os.environ["PATH"]}
    ours |= {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    assert ours.items() <= given.items()
    assert not Path(given["HOME"]).exists()
    assert mask == 0o022


SETTLED = """
import gc, os, resource
from racetrack import environment
environment.settle()
environment.settle()
assert gc.get_threshold()[0] == environment.OBJECTS_UNTIL_COLLECTED
assert "http_proxy" not in os.environ, "clients would go through the proxy"
assert environment.of_download()["http_proxy"] == "http://127.0.0.1:9"
assert "http_proxy" in environment.ignored()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (4096, 4096)
assert os.umask(0) == 0o022
environment.require_open_files()
"""


@pytest.mark.slow
def test_a_process_that_has_settled_depends_on_its_shell_no_more() -> None:
    done = subprocess.run(
        ["prlimit", "--nofile=256:4096", sys.executable, "-c", SETTLED],
        env={**os.environ, "http_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
