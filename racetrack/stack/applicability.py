"""Applicability of settings: a setting has an effect if a service that the stack starts, or the
harness, reads it."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain

from racetrack import plugins
from racetrack.config import IMAGE_VERSIONS, of_engine, own_names
from racetrack.errors import UsageError
from racetrack.install.versions import in_env_files, names
from racetrack.workloads.contract import find_workload

# Runtime → what an engine's folder contains if its services run there; `airgap` means containers
# from images built here.
FORMS = {
    "native": ("services",),
    "compose": ("compose.yml",),
    "airgap": ("compose.yml", "services"),
    "kubernetes": ("kubernetes",),
}
REDPANDA = ("REDPANDA_SMP", "REDPANDA_MEMORY")
KAFKA = ("KAFKA_HEAP", "KAFKA_CONTROLLER_PORT", "KAFKA_VERSION", "APICURIO_VERSION")
# Runtimes, the settings that have no effect there, and the reason.
EXCEPTIONS = (
    (("compose",), KAFKA, "broker and registry are Redpanda there: see REDPANDA_MEMORY"),
    (
        ("native", "airgap", "kubernetes"),
        REDPANDA,
        "the broker is Apache Kafka there: see KAFKA_HEAP",
    ),
    (("airgap", "kubernetes"), ("KAFKA_CONTROLLER_PORT",), "it is not published"),
    (("native",), ("*_TMPFS",), "data is in /dev/shm there"),
    (
        ("kubernetes",),
        ("*_TMPFS", "*_CPUS"),
        "the manifests have the sizes of pods (kubernetes/, racetrack/engines/*/kubernetes)",
    ),
)
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
# Users export ports and versions for several runtimes at once, so a run must not refuse to start
# because one of them has no effect.
EXPORTED = ("_PORT", "_VERSION")
# End of the names of settings for the initial rate of a source; the main topic's source.
START, MAIN = "_per_second_start", "events"


@dataclass(frozen=True)
class Applicability:
    """Exceptions from the rule that an engine's services read its settings, in every runtime in
    which they run. Settings are given by their names in `.env`.

    An engine defines its exceptions as `APPLICABILITY` in its `settings.py`.
    """

    # Settings that only the harness reads, in every runtime.
    harness_only: Collection[str] = ()
    # Settings that the harness passes to a service even if the user provides it.
    elsewhere: Collection[str] = ()
    # Setting of a service that the user provides → the runtimes that can use such a service.
    provided: Mapping[str, Collection[str]] = field(default_factory=dict)
    # Settings of files that services keep when they are killed. Pods have no folder in common.
    kept_files: Collection[str] = ()
    # Setting → the only service that reads it; by default, all services of the engine do.
    owners: Mapping[str, str] = field(default_factory=dict)
    # Setting → the workloads with which it has an effect, if these are not all.
    workloads: Mapping[str, Collection[str]] = field(default_factory=dict)
    # Settings that contain versions of public container images.
    image_versions: Collection[str] = ()


STACK = Applicability(
    provided=dict.fromkeys((*KAFKA_ELSEWHERE, *REGISTRY_ELSEWHERE), ("native", "kubernetes")),
    owners={
        **dict.fromkeys((*REDPANDA, "REDPANDA_TMPFS", "KAFKA_HEAP"), "broker"),
        **dict.fromkeys(("KAFKA_RETENTION_BYTES", "BROKER_CPUS"), "broker"),
        **dict.fromkeys(KAFKA_ELSEWHERE, "loadgen"),
        **dict.fromkeys(REGISTRY_ELSEWHERE, "registry"),
    },
    image_versions=IMAGE_VERSIONS,
)


def harness_settings() -> frozenset[str]:
    """Return the settings of engines that only the harness reads."""
    return frozenset(name for brought in _all().values() for name in brought.harness_only)


def owners() -> dict[str, str]:
    """Return setting → the service that reads it, for settings that only one service reads."""
    every = (brought.owners.items() for brought in _all().values())
    return dict(chain.from_iterable(every))


def require_read(setting: str, services: Collection[str], started: Collection[str]) -> None:
    """Check that a service that the stack starts, or the harness, reads a setting. `services` are
    those of the engine that has the setting; empty if none has.

    Raises:
        UsageError: only services read it that the stack does not start.
    """
    readers = {owners()[setting]} if setting in owners() else {*services}
    also = {name for brought in _all().values() for name in brought.elsewhere}
    if readers and not readers & {*started} and setting not in harness_settings() | also:
        raise UsageError(
            f"{setting} has no effect: this stack does not start {' or '.join(sorted(readers))}."
            " Leave it out."
        )


def workload_of(setting: str) -> str:
    """Return the workload that defines a setting; "" if no workload does."""
    modules = plugins.of_all_workloads("settings").items()
    return next((name for name, module in modules if setting.lower() in own_names(module)), "")


def why_without_effect(setting: str, workload: str) -> str:
    """Return the reason why a setting has no effect with a workload; "" if it has an effect."""
    if (owner := workload_of(setting)) not in ("", workload):
        return f"it is a setting of the workload {owner}"
    chosen, service = find_workload(workload), owners().get(setting, "")
    if service and not chosen.needed((service,)):
        return f"{service} is not started, since that workload has no tables"
    kind = setting.lower().removesuffix(START)
    if setting.lower().endswith(START) and kind not in (MAIN, *chosen.watched_kinds):
        return f"that workload has no {kind}"
    limited = (each.workloads[setting] for each in _all().values() if setting in each.workloads)
    having = next(limited, (workload,))
    return "" if workload in having else f"it has an effect with {', '.join(having)} only"


def why_ignored(setting: str, runtime: str, *, airgap: bool) -> str:
    """Return the reason why a setting has no effect in this runtime; "" if it has an effect."""
    name, where = setting.upper(), "airgap" if runtime == "compose" and airgap else runtime
    matching = (
        why
        for settings, why in _ignored(where)
        if any(fnmatchcase(name, pattern) for pattern in settings)
    )
    return next(matching, "")


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


def require_overrides_applicable(
    services: Collection[str], engines: Collection[str], runtime: str, *, airgap: bool
) -> None:
    """Check that all settings of these services and engines that the environment overrides have an
    effect.

    Otherwise the user would attribute the result to a setting that was ignored.

    Raises:
        UsageError: a setting has no effect in this runtime.
    """
    in_file = in_env_files()
    given = {name.upper(): value.strip() for name, value in os.environ.items()}
    of_stack = (name for name, service in STACK.owners.items() if service in services)
    of_engines = (name.upper() for engine in engines for name in of_engine(engine))
    for name in (*of_stack, *of_engines):
        changed = name in given and given[name] != in_file.get(name, "")
        if changed and not name.endswith(EXPORTED):
            remedy = "Unset it in the environment, or choose another runtime (RUNTIME, AIRGAP)."
            require_applicable(name, runtime, airgap=airgap, remedy=remedy)


def _ignored(where: str) -> Iterator[tuple[Collection[str], str]]:
    """Yield settings, or patterns of their names, without effect in a runtime, and the reason."""
    if where in ("airgap", "kubernetes"):
        yield names(), "it is in the images that `./race images` made"
    for runtimes, settings, why in EXCEPTIONS:
        if where in runtimes:
            yield settings, why
    for engine, brought in _all().items():
        unused = [name for name, runtimes in brought.provided.items() if where not in runtimes]
        yield unused, "services in containers use those of the stack only"
        if where != "compose":
            yield brought.image_versions, "no published image is used there"
        if where == "kubernetes":
            yield brought.kept_files, "pods have no folder in common"
        if engine and not all((plugins.ENGINES / engine / part).exists() for part in FORMS[where]):
            own = {name.upper() for name in of_engine(engine)} - {*brought.harness_only}
            yield own, f"it starts no service of {engine}"


@cache
def _all() -> dict[str, Applicability]:
    """Return engine → its exceptions; those of the stack have the key ""."""
    none = Applicability()
    return {"": STACK} | {
        engine: getattr(module, "APPLICABILITY", none)
        for engine, module in plugins.of_all("settings").items()
    }
