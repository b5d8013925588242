"""The service of an engine that is a Java program of ours."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack.config import Settings
from racetrack.stack import jvm, net
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.stack.services import registry

READY_FILE = "ready"


@dataclass(frozen=True)
class Peers:
    """What a program finds beside Kafka."""

    after: tuple[str, ...]
    told: Callable[[Settings], Mapping[str, str]]  # where it is


def _registry(settings: Settings) -> Mapping[str, str]:
    return {"SCHEMA_REGISTRY_URL": registry.url(settings)}


def _redis(settings: Settings) -> Mapping[str, str]:
    host, _, port = net.redis(settings).rpartition(":")
    return {"REDIS_HOST": host, "REDIS_PORT": port}


TABLES = Peers(("loadgen", "debezium"), _registry)  # which make the topics
REDIS = Peers(("loadgen", "redis"), _redis)  # the first makes the topic, and fills Redis


def _only_warnings(_part: Path) -> Sequence[str]:
    return jvm.only_warnings()


@dataclass(frozen=True)
class Program:
    """See `racetrack.stack.service.NativeService`. Its part is called as it is."""

    name: str
    jar: str  # the one whose version is the engine's
    heap: Callable[[Settings], str]
    told: Callable[[Settings], Mapping[str, str]]  # in every runtime
    peers: Peers
    # What Java is started with, beside what all services have; it may name files of the part.
    options: Callable[[Path], Sequence[str]] = _only_warnings
    keeps_state: bool = False  # in a folder that it is told
    product: str = ""  # whose version it is, if that is called otherwise
    ready_within_s: float = 120.0

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def after(self) -> tuple[str, ...]:
        return self.peers.after

    @property
    def main(self) -> str:
        """The class that is run."""
        return f"racetrack.{self.name}.Main"

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        (context.work / READY_FILE).unlink(missing_ok=True)  # of one that was killed
        part, settings = context.parts[self.name], context.settings
        return Launch(
            argv=[
                str(jvm.java()),
                *jvm.options(self.heap(settings), context.work, settings),
                jvm.TELLS_OF_PAUSES,
                *self.options(part),
                "-cp",
                f"{part / 'classes'}:{jvm.class_path(part / 'lib')}",
                self.main,
            ],
            env={
                **self.told(settings),
                "KAFKA_BOOTSTRAP": net.kafka(settings),
                **self.peers.told(settings),
                **({"STATE_FOLDER": str(context.work / "state")} if self.keeps_state else {}),
                "READY_FILE": str(context.work / READY_FILE),
            },
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """The first of what it counts is written."""
        if not (context.work / READY_FILE).exists():
            raise NotReady("it has written nothing yet")

    def versions(self, context: Context) -> Mapping[str, str]:
        jars = " ".join(path.name for path in (context.parts[self.name] / "lib").glob("*.jar"))
        found = re.search(rf"\b{re.escape(self.jar)}-(\S+)\.jar", jars)
        return {self.product or self.name: found[1]} if found else {}
