"""Tests of facts about containers that come only from an engine's answers."""

from types import SimpleNamespace
from typing import Any

import docker
import pytest
from docker.errors import NotFound
from docker.models.images import Image

from racetrack.stack.compose.containers import VERSIONS, Containers
from racetrack.stack.containers import Unseen

ID = "sha256:" + "1" * 64
DIGEST = "sha256:" + "d" * 64
LABELS = {VERSIONS: '{"pypy": "3.11", "librdkafka": "2.16"}'}
OWN = f"id {ID}, librdkafka 2.16, pypy 3.11"
BUILT, PULLED = {"Build": [{"Ref": "x"}]}, {"Pull": [{"Repository": "docker.io/library/mysql"}]}


class Answers:
    """A fake engine with one container and its image."""

    def __init__(self, name: str, image: dict[str, Any], *, runs: bool = True) -> None:
        self._described = {
            "Image": ID,
            "Config": {"Image": name},
            # The id of another process on this machine, which must not be looked at.
            "State": {"Pid": 1, "Running": runs, "Status": "running" if runs else "exited"},
        }
        self.removed = False
        self.api = SimpleNamespace(inspect_container=self._inspect)
        self.images = SimpleNamespace(get=lambda _: Image(attrs={"Id": ID, "Config": {}, **image}))

    def _inspect(self, _: str) -> dict[str, Any]:
        if self.removed:
            raise NotFound("No such container")
        return self._described


@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [
        # Pulled: named by digest, in either image store.
        ("mysql:8", {"RepoDigests": [f"mysql@{DIGEST}"]}, f"mysql:8@{DIGEST}"),
        ("mysql:8", {"RepoDigests": [f"mysql@{DIGEST}"], "Identity": PULLED}, f"mysql:8@{DIGEST}"),
        # Built here: named by versions, because nobody can pull its digest.
        ("racetrack/x:1", {"Config": {"Labels": LABELS}}, f"racetrack/x:1 ({OWN})"),
        (
            "racetrack/x:1",
            {"RepoDigests": [f"racetrack/x@{DIGEST}"], "Config": {"Labels": LABELS}},
            f"racetrack/x:1 ({OWN})",
        ),
        # Built by somebody else: named by id if never pulled, even if it has a digest (from a
        # push).
        ("mysql:8", {}, f"mysql:8 (id {ID})"),
        ("mysql:8", {"RepoDigests": [f"mysql@{DIGEST}"], "Identity": BUILT}, f"mysql:8 (id {ID})"),
        # Built, and also pulled: named by digest.
        (
            "mysql:8",
            {"RepoDigests": [f"mysql@{DIGEST}"], "Identity": {**BUILT, **PULLED}},
            f"mysql:8@{DIGEST}",
        ),
    ],
)
def test_an_image_is_named_by_a_digest_only_if_it_can_be_pulled(
    name: str, facts: dict[str, Any], expected: str
) -> None:
    client: docker.DockerClient = Answers(name, facts)  # type: ignore[assignment]
    assert Containers(client, "racetrack", visible=True).image("c") == expected


def test_processes_that_can_not_be_seen_are_not_looked_for() -> None:
    """The engine runs on another machine, so its process ids belong to other processes here."""
    answers = Answers("mysql:8.4.10", {})
    live = Containers(answers, "racetrack", visible=False).live("c")  # type: ignore[arg-type]
    assert isinstance(live, Unseen)
    assert (live.runs(), live.pids(), live.group) == (True, [], None)
    answers.removed = True
    assert not live.runs()
