"""Tests of the choice of a runtime, and of the messages about it."""

import platform
from collections.abc import Sequence
from typing import cast

import pytest

from racetrack.config import Settings, load
from racetrack.errors import RacetrackError
from racetrack.stack import runtime
from racetrack.stack.compose.engine import NoDocker
from racetrack.stack.compose.stack import ComposeStack
from racetrack.stack.contract import Unmeasurable
from tests.run.fakes import FakeStack

IN_A_MACHINE = Unmeasurable("It is in a machine of its own", "Go inside")


class Containers(FakeStack):
    """A stack of containers with every service except `swiftd`, the service of a made-up engine."""

    docker_version = "99.1"

    def missing(self, services: Sequence[str]) -> list[str]:
        return [name for name in services if name == "swiftd"]


class Machine:
    """A machine with or without Docker, which may be in a virtual machine."""

    def __init__(self, *, docker: bool = True, virtual: bool = False) -> None:
        self._docker, self._virtual = docker, virtual

    def open_compose(self, settings: Settings) -> ComposeStack:
        if not self._docker:
            raise NoDocker("no Docker engine answers", "Start it")
        stack = Containers(settings, "compose")
        stack.unmeasurable = IN_A_MACHINE if self._virtual else None
        return cast(ComposeStack, stack)

    def chosen(self, setting: str, *services: str, to_play: bool = False) -> tuple[str, list[str]]:
        """Return the runtime that is chosen with this value of RUNTIME, and the printed lines."""
        lines: list[str] = []
        stack = runtime.open_stack(
            load({"RUNTIME": setting, "AIRGAP": "false"}),
            ["mysql", *services],
            lines.append,
            to_play=to_play,
            open_compose=self.open_compose,
        )
        return stack.runtime, lines

    def possible(self, setting: str) -> list[str]:
        """Return the runtimes in which a stack may be running."""
        settings: Settings = load({"RUNTIME": setting, "AIRGAP": "false"})
        found = runtime.possible_stacks(settings, self.open_compose)
        return [stack.runtime for stack in found]


LINUX, WITHOUT_DOCKER, VIRTUAL = Machine(), Machine(docker=False), Machine(virtual=True)


def test_auto_chooses_compose_if_docker_answers_and_prints_why() -> None:
    answers = "Runtime compose: Docker 99.1 answers."
    assert LINUX.chosen("auto") == ("compose", [answers])
    missing = "Runtime native: no Docker engine answers."
    assert WITHOUT_DOCKER.chosen("auto") == ("native", [missing])
    no_service = "Runtime native: docker-compose.yml has no service swiftd."
    assert LINUX.chosen("auto", "swiftd") == ("native", [no_service])
    virtual = "Runtime native: It is in a machine of its own."
    assert VIRTUAL.chosen("auto") == ("native", [virtual])


def test_an_explicit_choice_is_followed_or_refused_with_the_reason() -> None:
    assert LINUX.chosen("native") == ("native", [])
    assert LINUX.chosen("compose") == ("compose", [])
    with pytest.raises(RacetrackError, match=r"answers. Start it, or set RUNTIME="):
        WITHOUT_DOCKER.chosen("compose")
    with pytest.raises(RacetrackError, match=r"has no service swiftd. Set RUNTIME=native"):
        LINUX.chosen("compose", "swiftd")
    with pytest.raises(
        RacetrackError,
        match=r"machine of its own: CPU .* nothing has been started\. Go inside, or set RUNTIME="
        r"native\. To try it .* `./race up ENGINE`",
    ) as refusal:
        VIRTUAL.chosen("compose")
    assert refusal.value.exit_code == 3


def test_a_stack_that_can_not_be_measured_is_accepted_to_play_if_compose_is_requested() -> None:
    assert VIRTUAL.chosen("compose", to_play=True) == ("compose", [])
    assert VIRTUAL.chosen("auto", to_play=True)[0] == "native"


def test_stacks_may_run_in_each_runtime_that_the_setting_allows() -> None:
    assert LINUX.possible("auto") == ["compose", "native"]
    assert LINUX.possible("compose") == ["compose"]
    assert WITHOUT_DOCKER.possible("auto") == WITHOUT_DOCKER.possible("native") == ["native"]


def test_a_mac_has_containers_to_play_with_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    answers = "Runtime compose: Docker 99.1 answers."
    assert VIRTUAL.chosen("auto", to_play=True) == ("compose", [answers])
    assert VIRTUAL.possible("auto") == ["compose"]
    with pytest.raises(RacetrackError, match=r"nothing has been started\. Go inside\. To try it"):
        VIRTUAL.chosen("auto")
    with pytest.raises(RacetrackError, match=r"no service swiftd\. Run it on Linux, or describe"):
        VIRTUAL.chosen("auto", "swiftd")
    with pytest.raises(RacetrackError, match=r"^No Docker engine answers\. Start it\.$"):
        WITHOUT_DOCKER.chosen("auto", to_play=True)
    with pytest.raises(RacetrackError, match="No Docker engine answers"):
        WITHOUT_DOCKER.possible("auto")
    with pytest.raises(RacetrackError, match=r"from Debian, and this is not Linux\. Use Docker"):
        LINUX.chosen("native")
