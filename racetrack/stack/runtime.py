"""Chooses what the services of a stack run as: containers or plain processes."""

from collections.abc import Sequence

from racetrack.errors import UsageError
from racetrack.settings import Settings
from racetrack.stack.contract import Say, Stack, Standing
from racetrack.stack.native.stack import NativeStack


def open_stack(settings: Settings, services: Sequence[str], say: Say) -> Stack:
    """A stack of these settings that has these services; nothing is started yet.

    RUNTIME=auto is compose where a Docker engine answers and docker-compose.yml has all of the
    services, else native; `say` gets a line that tells which, and why.

    Raises:
        NoDocker: RUNTIME=compose, and there is no Docker that can be used.
        UsageError: RUNTIME=compose, and docker-compose.yml lacks a service.
    """
    if settings.runtime == "native":
        return NativeStack(settings)
    from racetrack.stack.compose.engine import NoDocker, find
    from racetrack.stack.compose.stack import ComposeStack

    try:
        docker = find(airgap=settings.airgap)
        stack = ComposeStack(settings, docker)
        if missing := ", ".join(stack.missing(services)):
            where = "docker-compose.airgap.yml" if settings.airgap else "docker-compose.yml"
            why = f"{where} has no service {missing}"
            raise _NotThere(f"{why}. Set RUNTIME=native, or describe the service there.", why)
    except (NoDocker, _NotThere) as reason:
        if settings.runtime == "compose":
            raise
        say(f"Runtime native: {reason.why}.")
        return NativeStack(settings)
    if settings.runtime == "auto":
        say(f"Runtime compose: Docker {docker.version} answers.")
    return stack


def standing_stack(settings: Settings) -> tuple[Stack, Standing] | None:
    """The stack that `./race up` left standing, in whatever runtime, and what it says of itself."""
    for stack in stacks_that_may_stand(settings):
        if standing := stack.standing():
            return stack, standing
    return None


def stacks_that_may_stand(settings: Settings) -> list[Stack]:
    """A stack of each runtime that could have put one up under this name."""
    if settings.runtime == "native":
        return [NativeStack(settings)]
    from racetrack.stack.compose.engine import NoDocker, find
    from racetrack.stack.compose.stack import ComposeStack

    try:
        compose: list[Stack] = [ComposeStack(settings, find(airgap=settings.airgap))]
    except NoDocker:
        if settings.runtime == "compose":
            raise
        compose = []
    return [*compose, *([NativeStack(settings)] if settings.runtime == "auto" else [])]


class _NotThere(UsageError):
    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why
