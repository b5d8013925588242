"""The service of an engine that is a Java program of ours, with `src/` beside this file in it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from racetrack.settings import Settings
from racetrack.stack.native import jvm, net
from racetrack.stack.native.service import Context, Launch, NotReady

READY_FILE = "ready"


@dataclass(frozen=True)
class Program:
    """See `racetrack.stack.native.service.NativeService`. Its part is called as it is."""

    name: str
    jar: str  # the one whose version is the engine's
    heap: Callable[[Settings], str]
    told: Callable[[Settings], Mapping[str, str]]  # in every runtime
    after: tuple[str, ...] = ("loadgen", "redis")  # the first makes the topic, and fills Redis
    ready_within_s: float = 120.0

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def main(self) -> str:
        """The class that is run."""
        return f"racetrack.{self.name}.Main"

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        (context.work / READY_FILE).unlink(missing_ok=True)  # of one that was killed
        part, settings = context.parts[self.name], context.settings
        redis_host, _, redis_port = net.redis(settings).rpartition(":")
        return Launch(
            argv=[
                str(jvm.java()),
                *jvm.options(self.heap(settings), context.work),
                *jvm.only_warnings(),
                "-cp",
                f"{part / 'classes'}:{jvm.class_path(part / 'lib')}",
                self.main,
            ],
            env={
                **self.told(settings),
                "KAFKA_BOOTSTRAP": net.kafka(settings),
                "REDIS_HOST": redis_host,
                "REDIS_PORT": redis_port,
                "READY_FILE": str(context.work / READY_FILE),
            },
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """It has written counts to Redis."""
        if not (context.work / READY_FILE).exists():
            raise NotReady("it has written no count yet")

    def versions(self, context: Context) -> Mapping[str, str]:
        jars = " ".join(path.name for path in (context.parts[self.name] / "lib").glob("*.jar"))
        found = re.search(rf"\b{self.jar}-(\S+)\.jar", jars)
        return {self.name: found[1]} if found else {}
