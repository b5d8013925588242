"""Applicability of settings: which settings have no effect in a runtime, and why."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from racetrack import plugins
from racetrack.config import IMAGE_VERSIONS, own_names
from racetrack.errors import UsageError
from racetrack.install.versions import in_env_files, names
from racetrack.workloads.contract import find_workload

KAFKA = "the broker is Apache Kafka there: see KAFKA_HEAP"
REDPANDA = "broker and registry are Redpanda there: see REDPANDA_MEMORY"
IN_MEMORY = "data is in /dev/shm there"
BUILT_IN = "it is in the images that `./race images` made"
NO_IMAGE = "no published image is used there"
IN_MANIFESTS = "the manifests have the sizes of pods (kubernetes/, racetrack/engines/*/kubernetes)"
OWN = "services in containers use the stack's own broker"
KAFKA_ELSEWHERE = (
    "KAFKA_BOOTSTRAP_SERVERS",
    "KAFKA_TOPIC_PREFIX",
    "KAFKA_REPLICATION_FACTOR",
    "KAFKA_CLIENT_PROPERTIES",
)
REGISTRY_ELSEWHERE = (
    "REGISTRY_URL",
    "REGISTRY_USERNAME",
    "REGISTRY_PASSWORD_FILE",
    "REGISTRY_SSL_CA_LOCATION",
)
# End of the names of settings for the initial rate of a source; the main topic's source.
START, MAIN = "_per_second_start", "pageviews"
# Runtimes; `airgap` means containers from images built here.
CONTAINERS = ("compose", "airgap")
NOT_NATIVE = (*CONTAINERS, "kubernetes")
NOT_COMPOSE = ("native", "airgap", "kubernetes")


@dataclass(frozen=True)
class Ignored:
    """Settings that have no effect in some runtimes, and the reason."""

    settings: Collection[str]
    runtimes: Collection[str]
    why: str


@dataclass(frozen=True)
class Applicability:
    """The runtimes in which settings of the stack, or of one engine, have no effect, and the
    reasons. Settings are given by their names in `.env`.

    Each engine defines the applicability of its settings as `APPLICABILITY` in its `settings.py`.
    """

    # Settings that only the harness reads, in every runtime.
    harness_only: Collection[str] = ()
    ignored: Collection[Ignored] = ()
    # Setting → the service whose results it changes; for an engine's settings, by default, all of
    # the engine's services. Ports and versions are left out: users export them for several runtimes
    # at once, so a run must not refuse to start because one of them has no effect.
    affects: Mapping[str, str] = field(default_factory=dict)
    # Settings that the harness passes to a service even if the user provides it.
    elsewhere: Collection[str] = ()
    # Setting → the workloads with which it has an effect, if these are not all.
    workloads: Mapping[str, Collection[str]] = field(default_factory=dict)
    # Settings that contain versions of public container images.
    image_versions: Collection[str] = ()


STACK = Applicability(
    harness_only=(
        "RUNTIME",
        "AIRGAP",
        "KUBERNETES_SMALL",
        "KUBERNETES_JOB",
        "KUBERNETES_REGISTRY",
        "KUBERNETES_CUT_COMMAND",
        "LOGS_FOLDER",
        "STACK_NAME",
        "WORKLOAD",
        # A run that can't have several replicas refuses to start (`racetrack.run.checks`).
        "ENGINE_REPLICAS",
        "BROKER_REPLICAS",
        "LOADGEN_REPLICAS",
        "NOISE_GATE",
        "FOREIGN_CPU_MAX_PCT",
        "STEAL_MAX_PCT",
        "CORE_SPEED_MIN_PCT",
        "READS_PER_SECOND",
    ),
    ignored=(
        Ignored(("REDPANDA_SMP", "REDPANDA_MEMORY"), NOT_COMPOSE, KAFKA),
        Ignored(("REDPANDA_TMPFS",), ("native",), IN_MEMORY),
        Ignored(
            ("REDPANDA_TMPFS", "ENGINE_CPUS", "BROKER_CPUS", "LOADGEN_CPUS", "HARNESS_CPUS"),
            ("kubernetes",),
            IN_MANIFESTS,
        ),
        Ignored(
            ("KAFKA_HEAP", "KAFKA_CONTROLLER_PORT", "KAFKA_VERSION", "APICURIO_VERSION"),
            ("compose",),
            REDPANDA,
        ),
        Ignored(("KAFKA_CONTROLLER_PORT",), ("airgap", "kubernetes"), "it is not published"),
        Ignored((*KAFKA_ELSEWHERE, *REGISTRY_ELSEWHERE), CONTAINERS, OWN),
    ),
    affects={
        **dict.fromkeys(
            (
                "REDPANDA_SMP",
                "REDPANDA_MEMORY",
                "REDPANDA_TMPFS",
                "KAFKA_HEAP",
                "KAFKA_RETENTION_BYTES",
                "BROKER_CPUS",
            ),
            "broker",
        ),
        **dict.fromkeys(KAFKA_ELSEWHERE, "loadgen"),
        **dict.fromkeys(REGISTRY_ELSEWHERE, "registry"),
    },
    image_versions=IMAGE_VERSIONS,
)


def harness_settings() -> frozenset[str]:
    """Return the settings that only the harness reads."""
    return frozenset(name for each in _all() for name in each.harness_only)


def ignored_settings(runtime: str) -> dict[str, str]:
    """Return the settings without effect in a runtime (`native`, `compose`, `airgap` or
    `kubernetes`): setting → reason."""
    found: dict[str, str] = {}
    if runtime in ("airgap", "kubernetes"):
        found |= dict.fromkeys(names(), BUILT_IN)
    for each in _all():
        for rule in each.ignored:
            if runtime in rule.runtimes:
                found |= dict.fromkeys(rule.settings, rule.why)
        if runtime != "compose":
            found |= dict.fromkeys(each.image_versions, NO_IMAGE)
    return found


def affected_services() -> dict[str, str]:
    """Return setting → the service whose results it changes."""
    return {name: service for each in _all() for name, service in each.affects.items()}


def require_read(setting: str, services: Collection[str], started: Collection[str]) -> None:
    """Check that a service that the stack starts, or the harness, reads a setting. `services` are
    those of the engine that has the setting; empty if none has.

    Raises:
        UsageError: only services read it that the stack does not start.
    """
    readers = {affected_services()[setting]} if setting in affected_services() else {*services}
    also = {name for each in _all() for name in each.elsewhere}
    if readers and not readers & {*started} and setting not in harness_settings() | also:
        raise UsageError(
            f"{setting} has no effect: this stack does not start {' or '.join(sorted(readers))}."
            " Leave it out."
        )


def workload_of(setting: str) -> str:
    """Return the workload that defines a setting; "" if no workload does."""
    modules = plugins.of_all_workloads("settings").items()
    found = (name for name, module in modules if setting.lower() in own_names(module))
    return next(found, "")


def why_without_effect(setting: str, workload: str) -> str:
    """Return the reason why a setting has no effect with a workload; "" if it has an effect."""
    if (owner := workload_of(setting)) not in ("", workload):
        return f"it is a setting of the workload {owner}"
    of = find_workload(workload)
    service = affected_services().get(setting, "")
    if service and not of.needed((service,)):
        return f"{service} is not started, since that workload has no tables"
    kind = setting.lower().removesuffix(START)
    if setting.lower().endswith(START) and kind not in (MAIN, *of.watched_kinds):
        return f"that workload has no {kind}"
    limited = (each.workloads[setting] for each in _all() if setting in each.workloads)
    having = next(limited, (workload,))
    return "" if workload in having else f"it has an effect with {', '.join(having)} only"


def why_ignored(setting: str, runtime: str, *, airgap: bool) -> str:
    """Return the reason why a setting has no effect in this runtime; "" if it has an effect."""
    where = "airgap" if runtime == "compose" and airgap else runtime
    return ignored_settings(where).get(setting.upper(), "")


def require_applicable(setting: str, runtime: str, *, airgap: bool, remedy: str = "") -> None:
    """Check that a setting has an effect in this runtime; `remedy` is appended to the error.

    Raises:
        UsageError: the setting has no effect.
    """
    if why := why_ignored(setting, runtime, airgap=airgap):
        how = {"compose": "in containers", "kubernetes": "on Kubernetes"}.get(runtime, "natively")
        raise UsageError(
            f"{setting.upper()} has no effect on a stack that runs {how}: {why}. {remedy}".rstrip()
        )


def require_overrides_applicable(services: Collection[str], runtime: str, *, airgap: bool) -> None:
    """Check that all settings of these services that the environment overrides have an effect.

    Otherwise the user would attribute the result to a setting that was ignored.

    Raises:
        UsageError: a setting has no effect in this runtime.
    """
    in_file = in_env_files()
    given = {name.upper(): value.strip() for name, value in os.environ.items()}
    for setting, service in affected_services().items():
        if service in services and given.get(setting, in_file[setting]) != in_file[setting]:
            remedy = "Unset it in the environment, or choose another runtime (RUNTIME, AIRGAP)."
            require_applicable(setting, runtime, airgap=airgap, remedy=remedy)


def _all() -> Iterator[Applicability]:
    yield STACK
    for module in plugins.of_all("settings").values():
        if found := getattr(module, "APPLICABILITY", None):
            yield found
