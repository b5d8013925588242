"""Which runtime is chosen, and what is said of it."""

import platform
from collections.abc import Callable, Sequence

import pytest

from racetrack.config import Settings, load
from racetrack.errors import RacetrackError
from racetrack.stack import runtime
from racetrack.stack.compose import engine
from racetrack.stack.compose import stack as compose
from racetrack.stack.contract import Stack, Unmeasurable

NOT_THERE = engine.NoDocker("no Docker engine answers", "Start it")
IN_A_MACHINE = Unmeasurable("It is in a machine of its own", "Go inside")


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, list[str]]]:
    """The runtime for a setting on a machine that has Docker or not, and what was said."""

    def choose(
        setting: str,
        services: Sequence[str] = ("mysql",),
        *,
        docker: bool,
        virtual: bool = False,
        to_play: bool = False,
    ) -> tuple[str, list[str]]:
        found = Answering(virtual)
        monkeypatch.setattr(engine, "find", (lambda **_: found) if docker else raise_no_docker)
        said: list[str] = []
        stack: Stack = runtime.open_stack(
            load({"RUNTIME": setting, "AIRGAP": "false"}), services, said.append, to_play=to_play
        )
        return stack.runtime, said

    class Answering:
        client = None
        version = "99.1"

        def __init__(self, virtual: bool) -> None:
            self.unmeasurable = IN_A_MACHINE if virtual else None

    monkeypatch.setattr(
        compose.ComposeStack, "missing", lambda _, names: [n for n in names if n == "swiftd"]
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
    wanted = ["mysql", "swiftd"]
    assert chosen("auto", wanted, docker=True) == (
        "native",
        ["Runtime native: docker-compose.yml has no service swiftd."],
    )
    with pytest.raises(RacetrackError, match=r"has no service swiftd. Set RUNTIME=native"):
        chosen("compose", wanted, docker=True)


def test_what_may_stand(monkeypatch: pytest.MonkeyPatch, chosen: Chosen) -> None:
    def runtimes(setting: str) -> list[str]:
        settings: Settings = load({"RUNTIME": setting, "AIRGAP": "false"})
        return [stack.runtime for stack in runtime.possible_stacks(settings)]

    chosen("auto", docker=True)
    assert runtimes("auto") == ["compose", "native"]
    assert runtimes("compose") == ["compose"]
    chosen("auto", docker=False)
    assert runtimes("auto") == runtimes("native") == ["native"]


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that a Mac is, what the choice goes by."""
    monkeypatch.setattr(platform, "system", lambda: "Darwin")


def test_what_can_not_be_measured_is_refused_or_run_natively(chosen: Chosen) -> None:
    assert chosen("auto", docker=True, virtual=True) == (
        "native",
        ["Runtime native: It is in a machine of its own."],
    )
    with pytest.raises(
        RacetrackError,
        match=r"machine of its own: CPU .* nothing has been started\. Go inside, or set RUNTIME="
        r"native\. To try it .* `./race up ENGINE`",
    ) as refusal:
        chosen("compose", docker=True, virtual=True)
    assert refusal.value.exit_code == 3


def test_to_play_it_is_taken_where_it_is_wanted(chosen: Chosen) -> None:
    assert chosen("compose", docker=True, virtual=True, to_play=True) == ("compose", [])
    # Who leaves it open gets what can be measured, too.
    assert chosen("auto", docker=True, virtual=True, to_play=True)[0] == "native"


def test_a_mac_has_containers_to_play_with_and_nothing_else(chosen: Chosen, mac: None) -> None:
    assert chosen("auto", docker=True, virtual=True, to_play=True) == (
        "compose",
        ["Runtime compose: Docker 99.1 answers."],
    )
    with pytest.raises(RacetrackError, match=r"nothing has been started\. Go inside\. To try it"):
        chosen("auto", docker=True, virtual=True)
    with pytest.raises(RacetrackError, match=r"no service swiftd\. Run it on Linux, or describe"):
        chosen("auto", ["swiftd"], docker=True, virtual=True)
    for to_play in (False, True):
        with pytest.raises(RacetrackError, match="No Docker engine answers"):
            chosen("auto", docker=False, to_play=to_play)
        with pytest.raises(
            RacetrackError, match=r"from Debian, and this is not Linux\. Use Docker"
        ):
            chosen("native", docker=False, to_play=to_play)


def test_what_may_stand_on_a_mac(
    monkeypatch: pytest.MonkeyPatch, chosen: Chosen, mac: None
) -> None:
    settings: Settings = load({"RUNTIME": "auto", "AIRGAP": "false"})
    chosen("auto", docker=True, virtual=True, to_play=True)
    assert [each.runtime for each in runtime.possible_stacks(settings)] == ["compose"]
    monkeypatch.setattr(engine, "find", raise_no_docker)
    with pytest.raises(RacetrackError, match="No Docker engine answers"):
        runtime.possible_stacks(settings)


def raise_no_docker(**_: object) -> None:
    raise NOT_THERE


def test_native_is_no_way_out_on_a_mac(mac: None) -> None:
    assert str(engine.NoDocker("no Docker engine answers", "Start it")) == (
        "No Docker engine answers. Start it."
    )
