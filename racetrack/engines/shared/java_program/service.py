"""The service of an engine that is a Java program of ours."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack.config import Settings, revealed
from racetrack.stack import jvm, net
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.stack.services import registry

READY_FILE = "ready"
# Settings of an engine that others use: the JVM, and the installation.
NOT_PASSED_ON = ("HEAP", "VERSION")


@dataclass(frozen=True)
class Peers:
    """The services that a program uses beside Kafka."""

    after: tuple[str, ...]
    environment: Callable[[Settings], Mapping[str, str]]  # their addresses
    several_workloads: bool  # the program reads WORKLOAD


def _registry(settings: Settings) -> Mapping[str, str]:
    return {"SCHEMA_REGISTRY_URL": registry.url(settings)}


def _redis(settings: Settings) -> Mapping[str, str]:
    host, _, port = net.redis(settings).rpartition(":")
    return {"REDIS_HOST": host, "REDIS_PORT": port}


# The generator and Debezium create the topics.
TABLES = Peers(("loadgen", "debezium"), _registry, several_workloads=True)
# The generator creates the topic, and fills Redis.
REDIS = Peers(("loadgen", "redis"), _redis, several_workloads=False)


def _only_warnings(_part: Path) -> Sequence[str]:
    return jvm.only_warnings()


@dataclass(frozen=True)
class JavaProgram:
    """See `racetrack.stack.service.NativeService`. Engine, service and part have the same name."""

    name: str
    jar: str  # the one whose version is the engine's
    peers: Peers
    # Options of the JVM, beside those of all services; they may name files of the part.
    options: Callable[[Path], Sequence[str]] = _only_warnings
    keeps_state: bool = False  # in STATE_FOLDER
    product: str = ""  # the name of its version, if it is not the engine's
    ready_within_s: float = 120.0

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def after(self) -> tuple[str, ...]:
        return self.peers.after

    @property
    def main(self) -> str:
        """The main class."""
        return f"racetrack.{self.name}.Main"

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def environment(self, settings: Settings) -> dict[str, str]:
        """Return the settings that the program reads: all that begin with the engine's prefix, but
        NOT_PASSED_ON."""
        prefix = f"{self.name.upper()}_"
        own = {
            name: value
            for name, value in revealed(settings).items()
            if name.startswith(prefix) and name.removeprefix(prefix) not in NOT_PASSED_ON
        }
        return own | ({"WORKLOAD": settings.workload} if self.peers.several_workloads else {})

    def launch(self, context: Context) -> Launch:
        (context.work / READY_FILE).unlink(missing_ok=True)  # left by one that was killed
        part, settings = context.parts[self.name], context.settings
        heap: str = getattr(settings, f"{self.name}_heap")
        return Launch(
            argv=[
                str(jvm.java()),
                *jvm.options(heap, context.work, settings),
                jvm.LOG_GC_PAUSES,
                *self.options(part),
                "-cp",
                f"{part / 'classes'}:{jvm.class_path(part / 'lib')}",
                self.main,
            ],
            env={
                **self.environment(settings),
                "KAFKA_BOOTSTRAP": net.kafka(settings),
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
        found = re.search(rf"\b{re.escape(self.jar)}-(\S+)\.jar", jars)
        return {self.product or self.name: found[1]} if found else {}
