"""Which settings a runtime does not heed, and why: nobody should vary one in vain."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from racetrack import plugins
from racetrack.config import IMAGE_VERSIONS, own_names
from racetrack.errors import UsageError
from racetrack.install.versions import in_env_files, names

KAFKA = "the broker is Apache Kafka there: see KAFKA_HEAP"
REDPANDA = "broker and registry are Redpanda there: see REDPANDA_MEMORY"
IN_MEMORY = "data is in /dev/shm there"
BUILT_IN = "it is in the images that `./race images` made"
NO_IMAGE = "no published image is used there"


@dataclass(frozen=True)
class Applicability:
    """Which runtime uses a setting, by name in `.env`. An engine's is in its `settings.py`."""

    # Settings that the harness itself reads, in every runtime: what it starts services with, where
    # it writes, how it names things, which workload it runs, and the address of an engine that it
    # does not start.
    harness_only: Collection[str] = ()
    # Runtime (airgap: containers of images made here) → setting → why it does nothing there.
    ignored: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Setting → the service whose figures it changes: whoever sets one for a run expects that. Ports
    # and versions are not among them: people export those for several stacks at once.
    affects: Mapping[str, str] = field(default_factory=dict)
    # Versions of published images.
    image_versions: Collection[str] = ()


STACK = Applicability(
    harness_only=(
        *("RUNTIME", "AIRGAP", "LOGS_FOLDER", "STACK_NAME", "WORKLOAD", "HARNESS_CPUS"),
        *("NOISE_GATE", "FOREIGN_CPU_MAX_PCT", "STEAL_MAX_PCT", "CORE_SPEED_MIN_PCT"),
        "READS_PER_SECOND",
    ),
    ignored={
        "native": {
            "REDPANDA_SMP": KAFKA,
            "REDPANDA_MEMORY": KAFKA,
            **dict.fromkeys(("REDPANDA_TMPFS", "MYSQL_TMPFS"), IN_MEMORY),
        },
        "compose": dict.fromkeys(
            (
                *("KAFKA_HEAP", "KAFKA_CONTROLLER_PORT", "SCHEMA_REGISTRY_HEAP"),
                *("KAFKA_VERSION", "APICURIO_VERSION"),
            ),
            REDPANDA,
        ),
        "airgap": {
            "REDPANDA_SMP": KAFKA,
            "REDPANDA_MEMORY": KAFKA,
            "KAFKA_CONTROLLER_PORT": "it is not published",
        },
    },
    affects={
        **dict.fromkeys(
            ("REDPANDA_SMP", "REDPANDA_MEMORY", "REDPANDA_TMPFS", "KAFKA_HEAP"), "broker"
        ),
        "SCHEMA_REGISTRY_HEAP": "registry",
        "MYSQL_TMPFS": "mysql",
    },
    image_versions=IMAGE_VERSIONS,
)


def harness_settings() -> frozenset[str]:
    """The settings that are for the harness itself."""
    return frozenset(name for each in _all() for name in each.harness_only)


def ignored_settings(runtime: str) -> dict[str, str]:
    """Setting → why `native`, `compose` or `airgap` does not heed it."""
    found: dict[str, str] = {}
    if runtime == "airgap":
        found |= dict.fromkeys(names(), BUILT_IN)
    for each in _all():
        found |= each.ignored.get(runtime, {})
        if runtime != "compose":
            found |= dict.fromkeys(each.image_versions, NO_IMAGE)
    return found


def affected_services() -> dict[str, str]:
    """Setting → the service whose figures it changes."""
    return {name: service for each in _all() for name, service in each.affects.items()}


def workload_of(setting: str) -> str:
    """The workload that alone heeds a setting; empty if it is not a workload's."""
    modules = plugins.of_all_workloads("settings").items()
    found = (name for name, module in modules if setting.lower() in own_names(module))
    return next(found, "")


def why_ignored(setting: str, runtime: str, *, airgap: bool) -> str:
    """Why this runtime does not heed the setting; empty if it does."""
    where = "airgap" if runtime == "compose" and airgap else runtime
    return ignored_settings(where).get(setting.upper(), "")


def require_applicable(setting: str, runtime: str, *, airgap: bool, remedy: str = "") -> None:
    """
    Raises:
        UsageError: this runtime does not heed the setting; `remedy` says what to do.
    """
    if why := why_ignored(setting, runtime, airgap=airgap):
        how = "in containers" if runtime == "compose" else "natively"
        raise UsageError(
            f"{setting.upper()} does nothing to a stack that runs {how}: {why}. {remedy}".rstrip()
        )


def require_overrides_applicable(services: Collection[str], runtime: str, *, airgap: bool) -> None:
    """Check that each setting for these services does something if the environment changes it from
    what `.env` says. Whoever changes it would take the result for one with that setting.

    Raises:
        UsageError: a setting does nothing in this runtime.
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
