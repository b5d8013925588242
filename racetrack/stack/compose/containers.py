"""Containers of a compose project: their state, images and exit codes."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import docker
import psutil
from docker.errors import APIError, DockerException, NotFound
from docker.models.images import Image

from racetrack.errors import RacetrackError
from racetrack.stack.compose.names import PROJECT, SERVICE
from racetrack.stack.compose.project import HARNESS, STARTED_BY
from racetrack.stack.containers import CGroup, Live, Unseen

NO_LIMIT = "that of the machine or of Docker's own control group, since its container has no limit"
VERSIONS = "racetrack.versions"  # label of images built here: part → version, as JSON


@dataclass(frozen=True)
class Container:
    """State of a container at the time when the Docker engine was queried."""

    id: str
    service: str
    state: str  # running, exited, paused, …
    is_healthy: bool
    is_unhealthy: bool
    started_by_harness: bool


class Containers:
    """Containers of one compose project, including those that the harness did not start.

    `visible` means that their processes can be seen on this machine.
    """

    def __init__(self, client: docker.DockerClient, project: str, *, visible: bool) -> None:
        self._client, self._project, self._visible = client, project, visible

    def all(self) -> list[Container]:
        """Return every container of the project, including those of `docker compose run`.

        Raises:
            RacetrackError: the engine does not answer.
        """
        labels = {"label": f"{PROJECT}={self._project}"}
        with _engine_answers():
            return [_read(each) for each in self._client.api.containers(all=True, filters=labels)]

    def anything_left(self) -> bool:
        """Return whether there is a container, a network or a volume of the project."""
        labels = {"label": f"{PROJECT}={self._project}"}
        with _engine_answers():
            return bool(
                self._client.api.containers(all=True, filters=labels)
                or self._client.api.networks(filters=labels)
                or self._client.api.volumes(filters=labels)["Volumes"]
            )

    def live(self, container_id: str) -> Live | Unseen:
        """Return the processes of a running container.

        Raises:
            NotVisible: the processes can't be seen on this machine, although `visible` is true.
        """
        if not self._visible:
            return Unseen(container_id, lambda: self._runs(container_id))
        pid = int(self._inspect(container_id)["State"]["Pid"])
        group = CGroup.of(pid, container_id)
        return Live(container_id, psutil.Process(pid), group)

    def _runs(self, container_id: str) -> bool:
        try:
            return bool(self._inspect(container_id)["State"]["Running"])
        except NotFound:
            return False

    def ending(self, container_id: str) -> str:
        """Return how a container ended, in a few words."""
        try:
            described = self._inspect(container_id)
        except NotFound:
            return "its container was removed"
        state = described["State"]
        if state.get("OOMKilled"):
            limit = described["HostConfig"].get("Memory")
            own = f"its container may use {limit / 2**30:.1f} GiB" if limit else NO_LIMIT
            return f"killed by the kernel, because memory ran out: {own}"
        if state["Status"] != "exited":
            return f"its container is {state['Status']}"
        return f"exit code {state['ExitCode']}"

    def why_not_healthy(self, container_id: str) -> str:
        """Return the latest output of a container's health check."""
        health = self._inspect(container_id)["State"].get("Health") or {}
        outputs = [str(check["Output"]).strip() for check in health.get("Log") or []]
        return next((text for text in reversed(outputs) if text), "its health check has no output")

    def image(self, container_id: str) -> str:
        """Return the name and the digest of a container's image.

        For an image that was built on this machine: its name, id and installed components.
        """
        described = self._inspect(container_id)
        with _engine_answers():
            image = self._client.images.get(described["Image"])
        name = str(described["Config"]["Image"])
        digests = image.attrs.get("RepoDigests")
        if digests and not _was_made_here(image):
            return f"{name}@{digests[0].rpartition('@')[2]}"
        versions = json.loads(image.labels.get(VERSIONS, "{}"))
        parts = "".join(f", {part} {version}" for part, version in sorted(versions.items()))
        return f"{name} (id {image.id}{parts})"

    def kill(self, container_id: str) -> None:
        """Send SIGKILL to all processes of a running container; return when it has ended."""
        with _engine_answers():
            try:
                self._client.api.kill(container_id)
            except APIError as refusal:
                if refusal.status_code != HTTPStatus.CONFLICT:  # the container is not running
                    raise
            self._client.api.wait(container_id)

    def pause(self, container_id: str) -> None:
        """Freeze all processes of a container."""
        with _engine_answers():
            self._client.api.pause(container_id)

    def resume(self, container_id: str) -> None:
        """Continue a paused container."""
        with _engine_answers():
            self._client.api.unpause(container_id)

    def start(self, container_id: str) -> None:
        """Start a container that has ended."""
        with _engine_answers():
            self._client.api.start(container_id)

    def _inspect(self, container_id: str) -> dict[str, Any]:
        with _engine_answers():
            described: dict[str, Any] = self._client.api.inspect_container(container_id)
        return described


@contextlib.contextmanager
def _engine_answers() -> Iterator[None]:
    try:
        yield
    except NotFound:
        raise
    except (DockerException, OSError) as error:
        raise RacetrackError(f"The Docker engine failed: {error}. See its log.") from error


def _was_made_here(image: Image) -> bool:
    """Return whether an image was built on this machine, so that no registry has it.

    RepoDigests does not show that: in the containerd image store, the default since Docker 29,
    built images have it too. Racetrack's images have a label. For other images the engine reports
    the origin (since API 1.53).
    """
    identity = image.attrs.get("Identity") or {}
    return VERSIONS in image.labels or bool(identity.get("Build") and not identity.get("Pull"))


def _read(described: dict[str, Any]) -> Container:
    labels = described["Labels"]
    return Container(
        id=described["Id"],
        service=labels.get(SERVICE, "?"),
        state=described["State"],
        is_healthy="(healthy)" in described["Status"],
        is_unhealthy="(unhealthy)" in described["Status"],
        started_by_harness=labels.get(STARTED_BY) == HARNESS,
    )
