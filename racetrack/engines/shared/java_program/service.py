"""Service of an engine that runs as a Java program written for this project."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack.config import Settings, revealed
from racetrack.stack import applicability, jvm, net
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.stack.services import registry
from racetrack.workloads.contract import find_workload

READY_FILE = "ready"
# Settings that the program does not read: the JVM's heap size and options, and the version to
# install.
NOT_PASSED_ON = ("HEAP", "JVM_OPTIONS", "VERSION")


@dataclass(frozen=True)
class Peers:
    """Services that an engine's program uses in addition to Kafka."""

    after: tuple[str, ...]  # services that must be ready before the program starts
    environment: Callable[[Settings], Mapping[str, str]]  # variables with the services' addresses
    several_workloads: bool  # whether the program reads WORKLOAD, and settings of workloads


def _registry(settings: Settings) -> Mapping[str, str]:
    return {"SCHEMA_REGISTRY_URL": registry.url(settings)}


def _redis(settings: Settings) -> Mapping[str, str]:
    host, _, port = net.redis(settings).rpartition(":")
    return {"REDIS_HOST": host, "REDIS_PORT": port}


# For programs that read the main topic and CDC topics. The generator creates the main topic, and
# Debezium the CDC topics.
TABLES = Peers(("loadgen", "debezium"), _registry, several_workloads=True)
# For programs that read the main topic and Redis. The generator creates the topic and fills Redis.
REDIS = Peers(("loadgen", "redis"), _redis, several_workloads=False)


def _of_workload(settings: Settings) -> dict[str, str]:
    """Return the name of the workload, and those of its settings that programs read."""
    workload = find_workload(settings.workload)
    names = filter(None, (workload.selected_by, workload.watermark_delay))
    return {
        "WORKLOAD": workload.name,
        **{name.upper(): str(getattr(settings, name)) for name in names},
    }


def _only_warnings(_part: Path) -> Sequence[str]:
    return jvm.only_warnings()


@dataclass(frozen=True)
class JavaProgram:
    """See `racetrack.stack.service.NativeService`. The engine, the service and the installed
    component ("part") have the same name."""

    name: str
    jar: str  # name of the jar whose version is the engine's version
    peers: Peers
    # Function that returns additional JVM options. Its argument is the folder of the installed
    # component.
    options: Callable[[Path], Sequence[str]] = _only_warnings
    keeps_state: bool = False  # whether the program stores state in STATE_FOLDER
    product: str = ""  # name under which the version is reported, if it is not the engine's name
    ready_within_s: float = 120.0

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def after(self) -> tuple[str, ...]:
        return self.peers.after

    @property
    def main(self) -> str:
        """Name of the program's main class."""
        return f"racetrack.{self.name}.Main"

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def environment(self, settings: Settings) -> dict[str, str]:
        """Return the settings that the program reads: all settings that begin with the engine's
        name, except NOT_PASSED_ON and the settings that only the harness reads."""
        prefix = f"{self.name.upper()}_"
        left_out = {*applicability.harness_settings(), *(prefix + name for name in NOT_PASSED_ON)}
        own = {
            name: value
            for name, value in revealed(settings).items()
            if name.startswith(prefix) and name not in left_out
        }
        return own | (_of_workload(settings) if self.peers.several_workloads else {})

    def launch(self, context: Context) -> Launch:
        # A killed program leaves the file behind.
        (context.work / READY_FILE).unlink(missing_ok=True)
        part, settings = context.parts[self.name], context.settings
        heap: str = getattr(settings, f"{self.name}_heap")
        return Launch(
            argv=[
                str(jvm.java()),
                *jvm.options(heap, context.work, settings),
                jvm.LOG_GC_PAUSES,
                *shlex.split(getattr(settings, f"{self.name}_jvm_options", "")),
                *self.options(part),
                "-cp",
                f"{part / 'classes'}:{jvm.class_path(part / 'lib')}",
                self.main,
            ],
            env={
                **self.environment(settings),
                **net.kafka(settings).environment(),
                **self.peers.environment(settings),
                **({"STATE_FOLDER": str(context.work / "state")} if self.keeps_state else {}),
                "READY_FILE": str(context.work / READY_FILE),
            },
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """Raise NotReady until the program has written its first counts."""
        if not (context.work / READY_FILE).exists():
            raise NotReady("it has written nothing yet")

    def versions(self, context: Context) -> Mapping[str, str]:
        jars = " ".join(path.name for path in (context.parts[self.name] / "lib").glob("*.jar"))
        version = re.search(rf"\b{re.escape(self.jar)}-(\S+)\.jar", jars)
        return {self.product or self.name: version[1]} if version else {}
