"""Choice of the runtime of a stack: containers, pods or plain processes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from racetrack.config import Settings
from racetrack.errors import SetupError, UsageError
from racetrack.stack import processes
from racetrack.stack.applicability import why_ignored
from racetrack.stack.contract import RunningStack, Say, Stack, Unmeasurable
from racetrack.stack.lifetime import UpFile

if TYPE_CHECKING:
    from racetrack.stack.compose.stack import ComposeStack
    from racetrack.stack.kubernetes.stack import KubernetesStack

NO_STACK_IS_UP = "No stack is up. Start one with `./race up ENGINE`."


def open_compose(settings: Settings) -> "ComposeStack":
    """Return the stack of containers if a usable Docker engine answers.

    Raises:
        NoDocker: there is no usable Docker.
    """
    from racetrack.stack.compose.engine import find
    from racetrack.stack.compose.stack import ComposeStack

    return ComposeStack(settings, find(airgap=settings.airgap))


def open_stack(
    settings: Settings,
    services: Sequence[str],
    say: Say,
    *,
    to_play: bool = False,
    open_compose: Callable[[Settings], "ComposeStack"] = open_compose,
) -> Stack:
    """Return a stack for these settings that can run these services; start nothing.

    RUNTIME=auto chooses compose if a Docker engine answers, docker-compose.yml has all services,
    and the containers can be measured; otherwise native. `say` gets a line with the choice and the
    reason. With `to_play`, a stack that can't be measured is accepted if there is no other.

    Raises:
        NoDocker: RUNTIME=compose, and there is no usable Docker.
        NoCluster: RUNTIME=kubernetes, and there is no usable cluster.
        UsageError: RUNTIME=compose or kubernetes, and a service is not described for it.
        SetupError: containers can't be measured here, or native services can't run on this machine.
    """
    if settings.runtime == "native":
        return _native(settings)
    if name := _native_only(settings):
        if settings.runtime in ("compose", "kubernetes"):
            why = why_ignored(name, settings.runtime, airgap=settings.airgap)
            raise UsageError(f"{name}: {why}. Set RUNTIME=native.")
        say(f"Runtime native: {name} is set.")
        return _native(settings)
    if settings.runtime == "kubernetes":
        return _on_kubernetes(settings, services)
    from racetrack.stack.compose.engine import NoDocker

    try:
        stack = open_compose(settings)
        if missing := ", ".join(stack.missing(services)):
            where = "docker-compose.airgap.yml" if settings.airgap else "docker-compose.yml"
            raise _NotThere(f"{where} has no service {missing}")
        if stack.unmeasurable and not (to_play and _must_be_compose(settings)):
            raise _NotMeasured(stack.unmeasurable)
    except (NoDocker, _NotThere, _NotMeasured) as reason:
        if _must_be_compose(settings):
            raise
        say(f"Runtime native: {reason.why}.")
        return _native(settings)
    if settings.runtime == "auto":
        say(f"Runtime compose: Docker {stack.docker_version} answers.")
    return stack


def _must_be_compose(settings: Settings) -> bool:
    """Return whether the settings or the machine exclude the native runtime."""
    from racetrack import host

    return settings.runtime == "compose" or not host.runs_native()


def _native(settings: Settings) -> Stack:
    from racetrack import host
    from racetrack.stack.native.stack import NativeStack

    if not host.runs_native():
        raise SetupError(
            "RUNTIME=native takes its programs from Debian, and this is not Linux. Use Docker"
            " (RUNTIME=compose)."
        )
    return NativeStack(settings)


def _on_kubernetes(settings: Settings, services: Sequence[str]) -> Stack:
    stack = _kubernetes(settings)
    if missing := ", ".join(stack.missing(services)):
        raise _NotThere(f"There is no Kubernetes manifest of {missing}")
    return stack


def _kubernetes(settings: Settings) -> "KubernetesStack":
    from racetrack.stack.kubernetes.stack import KubernetesStack

    return KubernetesStack(settings)


def running_stack(settings: Settings) -> tuple[Stack, RunningStack] | None:
    """Return the stack that `./race up` left running, in any runtime, and its description.

    The returned stack has the workload with which it was started, not the workload in `settings`.
    Docker is queried only if a file on this machine records that a stack was left running.
    """
    from racetrack.stack.compose import orphans as in_compose
    from racetrack.stack.kubernetes import orphans as on_kubernetes

    roots = [each.work_root(settings.stack_name) for each in (processes, in_compose, on_kubernetes)]
    runtime = next(filter(None, (UpFile(root).runtime() for root in roots)), None)
    if runtime is None:
        return None
    opens: dict[str, Callable[[Settings], Stack]]
    opens = {"native": _native, "compose": open_compose, "kubernetes": _kubernetes}
    stack = opens[runtime](settings)
    running = stack.running()
    if running is None:
        return None
    stack.settings = stack.settings.model_copy(update={"workload": running.workload})
    return stack, running


def possible_stacks(
    settings: Settings, open_compose: Callable[[Settings], "ComposeStack"] = open_compose
) -> list[Stack]:
    """Return one stack for each runtime in which a stack of this name may be running."""
    if settings.runtime == "native" or _native_only(settings):
        return [_native(settings)]
    if settings.runtime == "kubernetes":
        return [_kubernetes(settings)]
    from racetrack.stack.compose.engine import NoDocker

    try:
        compose = [open_compose(settings)]
    except NoDocker:
        if _must_be_compose(settings):
            raise
        compose = []
    return [*compose, *([] if _must_be_compose(settings) else [_native(settings)])]


def _native_only(settings: Settings) -> str:
    """Return the setting of a service that the user provides and that containers can't use; "" if
    there is none. A provided Kafka can be used natively and on Kubernetes."""
    is_provided = settings.runtime != "kubernetes" and settings.kafka_bootstrap_servers
    return "KAFKA_BOOTSTRAP_SERVERS" if is_provided else ""


class _NotThere(UsageError):
    def __init__(self, why: str) -> None:
        from racetrack import host

        native = "Set RUNTIME=native" if host.runs_native() else "Run it on Linux"
        super().__init__(f"{why}. {native}, or describe the service there.")
        self.why = why


class _NotMeasured(SetupError):
    def __init__(self, unmeasurable: Unmeasurable) -> None:
        from racetrack import host

        native = ", or set RUNTIME=native" if host.runs_native() else ""
        super().__init__(
            f"{unmeasurable.why}: CPU and memory can't be measured, and nothing has been started."
            f" {unmeasurable.remedy}{native}. To try it without measuring: `./race up ENGINE`."
        )
        self.why = unmeasurable.why
