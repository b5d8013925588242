"""Which runtime is chosen, and what is said of it."""

from collections.abc import Callable, Sequence

import pytest

from racetrack.errors import RacetrackError
from racetrack.settings import Settings, load
from racetrack.stack import runtime
from racetrack.stack.compose import engine
from racetrack.stack.compose import stack as compose
from racetrack.stack.contract import Stack

NOT_THERE = engine.NoDocker("no Docker engine answers", "Start it")


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, list[str]]]:
    """The runtime for a setting on a machine that has Docker or not, and what was said."""

    def choose(
        setting: str, services: Sequence[str] = ("mysql",), *, docker: bool
    ) -> tuple[str, list[str]]:
        monkeypatch.setattr(engine, "find", found if docker else missing)
        said: list[str] = []
        stack: Stack = runtime.open_stack(
            load({"RUNTIME": setting, "AIRGAP": "false"}), services, said.append
        )
        return stack.runtime, said

    def found(**_: object) -> object:
        class Answering:
            client = None
            version = "99.1"

        return Answering()

    def missing(**_: object) -> object:
        raise NOT_THERE

    monkeypatch.setattr(
        compose.ComposeStack, "missing", lambda _, names: [n for n in names if n == "cal"]
    )
    return choose


Chosen = Callable[..., tuple[str, list[str]]]


def test_auto_goes_by_what_there_is_and_says_why(chosen: Chosen) -> None:
    assert chosen("auto", docker=True) == ("compose", ["Runtime compose: Docker 99.1 answers."])
    assert chosen("auto", docker=False) == ("native", ["Runtime native: no Docker engine answers."])


def test_a_choice_by_hand_needs_no_words(chosen: Chosen) -> None:
    assert chosen("native", docker=True) == ("native", [])
    assert chosen("compose", docker=True) == ("compose", [])


def test_compose_by_hand_where_there_is_none(chosen: Chosen) -> None:
    with pytest.raises(
        RacetrackError, match=r"No Docker engine answers. Start it, or set RUNTIME="
    ):
        chosen("compose", docker=False)


def test_a_service_that_has_no_container(chosen: Chosen) -> None:
    wanted = ["mysql", "cal"]
    assert chosen("auto", wanted, docker=True) == (
        "native",
        ["Runtime native: docker-compose.yml has no service cal."],
    )
    with pytest.raises(RacetrackError, match=r"has no service cal. Set RUNTIME=native"):
        chosen("compose", wanted, docker=True)


def test_what_may_stand(monkeypatch: pytest.MonkeyPatch, chosen: Chosen) -> None:
    def runtimes(setting: str) -> list[str]:
        settings: Settings = load({"RUNTIME": setting, "AIRGAP": "false"})
        return [stack.runtime for stack in runtime.stacks_that_may_stand(settings)]

    chosen("auto", docker=True)
    assert runtimes("auto") == ["compose", "native"]
    assert runtimes("compose") == ["compose"]
    chosen("auto", docker=False)
    assert runtimes("auto") == runtimes("native") == ["native"]
