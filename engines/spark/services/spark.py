"""The program in which Spark keeps the views (see engines/spark/program)."""

import re
from collections.abc import Mapping
from pathlib import Path

from engines.spark import recipe
from engines.spark.knobs import Knobs
from racetrack.settings import Settings
from racetrack.stack.native import jvm, net
from racetrack.stack.native.service import Context, Launch, NotReady
from racetrack.stack.services import registry

MAIN = "racetrack.spark.Main"
READY_FILE = "ready"


class Spark:
    """See `racetrack.stack.native.service.NativeService`."""

    name = "spark"
    parts = ("spark",)
    after = ("loadgen", "debezium")  # which make the topics
    ready_within_s = 180.0

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        (context.work / READY_FILE).unlink(missing_ok=True)  # of one that was killed
        part = context.parts["spark"]
        return Launch(
            argv=[
                str(jvm.java()),
                *jvm.options(Knobs.of(context.settings).spark_heap, context.work),
                *options(part),
                "-cp",
                f"{part / 'classes'}:{jvm.class_path(part / 'lib')}",
                MAIN,
            ],
            env={
                **told(context.settings),
                "KAFKA_BOOTSTRAP": net.kafka(context.settings),
                "SCHEMA_REGISTRY_URL": registry.url(context.settings),
                "SPARK_STATE_FOLDER": str(context.work / "state"),
                "SPARK_READY_FILE": str(context.work / READY_FILE),
            },
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """The first row of its summary is written."""
        if not (context.work / READY_FILE).exists():
            raise NotReady("it has written no row yet")

    def versions(self, context: Context) -> Mapping[str, str]:
        jars = " ".join(path.name for path in (context.parts["spark"] / "lib").glob("*.jar"))
        found = re.search(r"\bspark-sql_2\.13-(\S+)\.jar", jars)
        return {"spark": found[1]} if found else {}


def options(part: Path) -> list[str]:
    """What Java is started with, beside what all services have."""
    return [f"@{part / recipe.OPTIONS}", f"-Dlog4j2.configurationFile={part / recipe.LOG4J}"]


def told(settings: Settings) -> dict[str, str]:
    """What the program is told in every runtime."""
    knobs = Knobs.of(settings)
    return {
        "WORKLOAD": settings.workload,
        "SPARK_TRIGGER_MS": str(knobs.spark_trigger_ms),
        "SPARK_CORES": str(knobs.spark_cores),
        "SPARK_SHUFFLE_PARTITIONS": str(knobs.spark_shuffle_partitions),
        "SPARK_STATE_STORE": knobs.spark_state_store,
        "SPARK_AFTER_A_KILL": knobs.spark_after_a_kill,
    }


SERVICE = Spark()
