"""Facts about containers from an engine's answers alone."""

from types import SimpleNamespace
from typing import Any

import docker
import pytest
from docker.errors import NotFound
from docker.models.images import Image

from racetrack.stack.compose.containers import VERSIONS, Containers, Unseen

ID = "sha256:" + "1" * 64
DIGEST = "sha256:" + "d" * 64
LABELS = {VERSIONS: '{"pypy": "3.11", "librdkafka": "2.16"}'}
BUILT, PULLED = {"Build": [{"Ref": "x"}]}, {"Pull": [{"Repository": "docker.io/library/mysql"}]}


class Answers:
    """An engine with one container, and the image of it."""

    def __init__(self, name: str, image: dict[str, Any], *, runs: bool = True) -> None:
        self._described = {
            "Image": ID,
            "Config": {"Image": name},
            # Of another process here: nobody may look.
            "State": {"Pid": 1, "Running": runs, "Status": "running" if runs else "exited"},
        }
        self.removed = False
        self.api = SimpleNamespace(inspect_container=self._inspect)
        self.images = SimpleNamespace(get=lambda _: Image(attrs={"Id": ID, "Config": {}, **image}))

    def _inspect(self, _: str) -> dict[str, Any]:
        if self.removed:
            raise NotFound("No such container")
        return self._described


def image_of(name: str, **image: object) -> str:
    client: docker.DockerClient = Answers(name, image)  # type: ignore[assignment]
    return Containers(client, "racetrack", visible=True).image("c")


@pytest.mark.parametrize("store", [{}, {"Identity": PULLED}], ids=["either store", "API 1.53"])
def test_an_image_that_was_pulled_is_named_with_its_digest(store: dict[str, Any]) -> None:
    assert (
        image_of("mysql:8.4.10", RepoDigests=[f"mysql@{DIGEST}"], **store)
        == f"mysql:8.4.10@{DIGEST}"
    )


@pytest.mark.parametrize(
    "digests", [[], [f"racetrack/loadgen@{DIGEST}"]], ids=["graph driver's store", "containerd's"]
)
def test_one_that_was_made_here_has_no_digest_that_could_be_pulled(digests: list[str]) -> None:
    assert image_of(
        "racetrack/loadgen:pypy-3.11", RepoDigests=digests, Config={"Labels": LABELS}
    ) == (f"racetrack/loadgen:pypy-3.11 (id {ID}, librdkafka 2.16, pypy 3.11)")


@pytest.mark.parametrize(
    ("digests", "store"),
    [([], {}), ([f"mysql@{DIGEST}"], {"Identity": BUILT})],
    ids=["graph driver's store", "containerd's, API 1.53"],
)
def test_nor_has_one_that_somebody_else_made(digests: list[str], store: dict[str, Any]) -> None:
    assert image_of("mysql:8.4.10", RepoDigests=digests, **store) == f"mysql:8.4.10 (id {ID})"


def test_one_that_was_built_and_then_pushed_can_be_pulled() -> None:
    identity = {**BUILT, **PULLED}
    assert image_of("me/mysql:1", RepoDigests=[f"me/mysql@{DIGEST}"], Identity=identity) == (
        f"me/mysql:1@{DIGEST}"
    )


def test_processes_that_can_not_be_seen_are_not_looked_for() -> None:
    """The engine's process ids are those of other processes here."""
    answers = Answers("mysql:8.4.10", {})
    live = Containers(answers, "racetrack", visible=False).live("c")  # type: ignore[arg-type]
    assert isinstance(live, Unseen)
    assert (live.runs(), live.pids(), live.group) == (True, [], None)
    answers.removed = True
    assert not live.runs()
