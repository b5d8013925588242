"""Choice of the runtime of a stack: containers, pods or plain processes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from racetrack import host
from racetrack.config import Settings
from racetrack.errors import SetupError, UsageError
from racetrack.stack import processes
from racetrack.stack.applicability import why_ignored
from racetrack.stack.contract import RunningStack, Say, Stack, Unmeasurable
from racetrack.stack.lifetime import UpFile
from racetrack.stack.service import runs_as_processes

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


def choose(settings: Settings, services: Sequence[str]) -> tuple[str, str]:
    """Return the runtime for which RUNTIME=auto stands, and a line with the reason and the way to
    choose another one. `services` are those of all engines that are to be compared."""
    if name := _native_only(settings):
        return "native", f"Runtime native: {name} is set, which containers can't use."
    if settings.airgap:
        return "compose", "Runtime compose: AIRGAP is true. RUNTIME=native has processes instead."
    if why := host.why_not_native():
        how = "RUNTIME=native tries processes" if host.runs_native() else "There is no other here"
        return "compose", f"Runtime compose: {why}. {how}."
    if only := _in_containers_only(services):
        return "compose", (
            f"Runtime compose, for all engines: {only} can't run as processes. Leave that out to"
            " have processes (RUNTIME=native)."
        )
    how = "RUNTIME=compose runs them in containers"
    return "native", f"Runtime native: the services are processes. {how}."


def _in_containers_only(services: Sequence[str]) -> str:
    """Return the names of services that can't run as processes."""
    return ", ".join(name for name in services if not runs_as_processes(name))


def open_stack(
    settings: Settings,
    services: Sequence[str],
    say: Say,
    *,
    to_play: bool = False,
    open_compose: Callable[[Settings], "ComposeStack"] = open_compose,
) -> Stack:
    """Return a stack for these settings that can run these services; start nothing.

    For RUNTIME=auto, `say` gets a line with the choice and the reason (see `choose`). With
    `to_play`, containers that can't be measured are accepted.

    Raises:
        NoDocker: RUNTIME=compose, and there is no usable Docker.
        NoCluster: RUNTIME=kubernetes, and there is no usable cluster.
        UsageError: RUNTIME=compose or kubernetes, and a service is not described for it.
        SetupError: containers can't be measured here, or native services can't run on this machine.
    """
    if settings.runtime == "auto":
        runtime, line = choose(settings, services)
        say(line)
        settings = settings.model_copy(update={"runtime": runtime})
    if settings.runtime == "native":
        return _native(settings)
    if name := _native_only(settings):
        why = why_ignored(name, settings.runtime, airgap=settings.airgap)
        raise UsageError(f"{name}: {why}. Set RUNTIME=native.")
    if settings.runtime == "kubernetes":
        return _on_kubernetes(settings, services)
    return _in_containers(settings, services, to_play, open_compose)


def _in_containers(
    settings: Settings,
    services: Sequence[str],
    to_play: bool,
    open_compose: Callable[[Settings], "ComposeStack"],
) -> Stack:
    from racetrack.stack.compose.engine import NoDocker

    try:
        stack = open_compose(settings)
        if missing := ", ".join(stack.missing(services)):
            where = "docker-compose.airgap.yml" if settings.airgap else "docker-compose.yml"
            raise _NotThere(f"{where} has no service {missing}")
        if stack.unmeasurable and not to_play:
            raise _NotMeasured(stack.unmeasurable)
    except (NoDocker, _NotThere, _NotMeasured) as error:
        if not (only := _in_containers_only(services)):
            raise
        raise SetupError(
            f"{only} can't run as processes, and containers can't be used: {error.why}. Change"
            " that, leave its engine out, or use one that runs elsewhere (docs/own-parts.md)."
        ) from error
    return stack


def _must_be_compose(settings: Settings) -> bool:
    """Return whether the settings or the machine exclude the native runtime."""
    return settings.runtime == "compose" or not host.runs_native()


def _native(settings: Settings) -> Stack:
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
        native = "Set RUNTIME=native" if host.runs_native() else "Run it on Linux"
        super().__init__(f"{why}. {native}, or describe the service there.")
        self.why = why


class _NotMeasured(SetupError):
    def __init__(self, unmeasurable: Unmeasurable) -> None:
        native = ", or set RUNTIME=native" if host.runs_native() else ""
        super().__init__(
            f"{unmeasurable.why}: CPU and memory can't be measured, and nothing has been started."
            f" {unmeasurable.remedy}{native}. To try it without measuring: `./race up ENGINE`."
        )
        self.why = unmeasurable.why
