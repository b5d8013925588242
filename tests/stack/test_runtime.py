"""Tests of the choice of a runtime, and that a stack left running reports its own engine and
workload."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from racetrack.config import Settings, load
from racetrack.errors import SetupError, UsageError
from racetrack.stack import processes, runtime
from racetrack.stack.compose.engine import NoDocker
from racetrack.stack.compose.stack import ComposeStack
from racetrack.stack.contract import Unmeasurable
from racetrack.stack.native.stack import NativeStack
from tests.run.fakes import FakeStack

PROCESS_ONLY, CONTAINER_ONLY = "cal", "materialized"  # services


class Containers(FakeStack):
    """A stack of containers with every service except one."""

    def missing(self, services: Sequence[str]) -> list[str]:
        return [name for name in services if name == PROCESS_ONLY]


@dataclass
class Machine:
    """A machine with or without Docker, which may be in a virtual machine."""

    docker: bool = True
    virtual: bool = False

    def open_compose(self, settings: Settings) -> ComposeStack:
        if not self.docker:
            raise NoDocker("no Docker engine answers", "Start it")
        stack = Containers(settings, "compose")
        if self.virtual:
            stack.unmeasurable = Unmeasurable("It is in a machine of its own", "Go inside")
        return cast(ComposeStack, stack)

    def chosen(
        self, setting: str, *services: str, to_play: bool = False, **settings: str
    ) -> tuple[str, list[str]]:
        """Return the runtime that is chosen with this value of RUNTIME, and the printed lines."""
        lines: list[str] = []
        loaded = load({"RUNTIME": setting, "AIRGAP": "false", **settings})
        stack = runtime.open_stack(
            loaded,
            ["mysql", *services],
            lines.append,
            to_play=to_play,
            open_compose=self.open_compose,
        )
        return stack.runtime, lines

    def possible(self, setting: str) -> list[str]:
        """Return the runtimes in which a stack may be running."""
        settings = load({"RUNTIME": setting, "AIRGAP": "false"})
        return [stack.runtime for stack in runtime.possible_stacks(settings, self.open_compose)]


LINUX, WITHOUT_DOCKER, VIRTUAL = Machine(), Machine(docker=False), Machine(virtual=True)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the whole PATH of a Debian, with `apt-get`."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "apt-get").touch(mode=0o755)
    return tmp_path


@pytest.mark.usefixtures("path")
def test_auto_means_processes_on_debian_whether_or_not_docker_answers() -> None:
    for machine in (LINUX, WITHOUT_DOCKER, VIRTUAL):
        assert machine.chosen("auto")[0] == "native"
        assert machine.chosen("auto", PROCESS_ONLY, to_play=True)[0] == "native"
    _, (line,) = LINUX.chosen("auto")
    assert "RUNTIME=compose" in line


def test_auto_means_containers_where_processes_are_not_supported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LINUX.chosen("auto", AIRGAP="true")[0] == "compose"
    monkeypatch.setenv("RACETRACK_NOT_NATIVE", "only root can install packages")
    runtime, (line,) = LINUX.chosen("auto")
    assert runtime == "compose" and "only root" in line and "RUNTIME=native" in line
    monkeypatch.delenv("RACETRACK_NOT_NATIVE")
    (path / "apt-get").unlink()
    assert LINUX.chosen("auto")[0] == "compose"
    with pytest.raises(SetupError, match="RUNTIME=native"):
        WITHOUT_DOCKER.chosen("auto")


@pytest.mark.usefixtures("path")
def test_a_service_without_a_native_form_moves_all_to_containers_or_is_refused() -> None:
    runtime, (line,) = LINUX.chosen("auto", "deephaven", CONTAINER_ONLY)
    assert runtime == "compose" and CONTAINER_ONLY in line and "RUNTIME=native" in line
    for machine in (WITHOUT_DOCKER, VIRTUAL):
        with pytest.raises(SetupError, match=CONTAINER_ONLY):
            machine.chosen("auto", CONTAINER_ONLY)
    with pytest.raises(SetupError, match=rf"{CONTAINER_ONLY} .* {PROCESS_ONLY}\."):
        LINUX.chosen("auto", CONTAINER_ONLY, PROCESS_ONLY)


def test_an_explicit_choice_is_followed_or_refused_with_the_reason() -> None:
    assert LINUX.chosen("native") == ("native", [])
    assert LINUX.chosen("compose") == ("compose", [])
    with pytest.raises(SetupError, match=r"RUNTIME="):
        WITHOUT_DOCKER.chosen("compose")
    with pytest.raises(UsageError, match=rf"{PROCESS_ONLY}. Set RUNTIME=native"):
        LINUX.chosen("compose", PROCESS_ONLY)
    with pytest.raises(SetupError, match=r"Go inside, or set RUNTIME=native.*`./race up ENGINE`"):
        VIRTUAL.chosen("compose")
    # To play, it is accepted.
    assert VIRTUAL.chosen("compose", to_play=True) == ("compose", [])
    assert VIRTUAL.chosen("auto", CONTAINER_ONLY, to_play=True)[0] == "compose"
    assert LINUX.possible("auto") == ["compose", "native"]
    assert LINUX.possible("compose") == ["compose"]
    assert WITHOUT_DOCKER.possible("auto") == WITHOUT_DOCKER.possible("native") == ["native"]


def test_it_keeps_the_workload_that_it_was_put_up_with(stack_name: str) -> None:
    settings = load({"STACK_NAME": stack_name, "WORKLOAD": "ads"})
    # Where no stack stands, nothing is looked for in Docker.
    for where in ("native", "compose"):
        assert runtime.running_stack(settings.model_copy(update={"runtime": where})) is None
    processes.work_root(stack_name).mkdir(parents=True)
    environment = {**os.environ, **processes.mark(stack_name, "mysql")}
    with subprocess.Popen(["sleep", "60"], env=environment) as service:
        NativeStack(settings).leave_running("fake")
        found = runtime.running_stack(load({"STACK_NAME": stack_name, "WORKLOAD": "shop"}))
        service.kill()
    assert found
    stack, standing = found
    assert (standing.runtime, standing.engine, standing.workload) == ("native", "fake", "ads")
    assert standing.services == {"mysql": [service.pid]}
    assert stack.settings.workload == "ads"
    assert runtime.running_stack(settings) is None  # none of its processes lives
