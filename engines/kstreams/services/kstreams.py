"""The program in which Kafka Streams keeps the views (see engines/kstreams/program)."""

import re
from collections.abc import Mapping

from engines.kstreams.knobs import Knobs
from racetrack.settings import Settings
from racetrack.stack.native import jvm, net
from racetrack.stack.native.service import Context, Launch, NotReady
from racetrack.stack.services import registry

MAIN = "racetrack.kstreams.Main"
READY_FILE = "ready"


class KStreams:
    """See `racetrack.stack.native.service.NativeService`."""

    name = "kstreams"
    parts = ("kstreams",)
    after = ("loadgen", "debezium")  # which make the topics
    ready_within_s = 180.0  # a hundred tasks with stores of their own

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        (context.work / READY_FILE).unlink(missing_ok=True)  # of one that was killed
        part = context.parts["kstreams"]
        return Launch(
            argv=[
                str(jvm.java()),
                *jvm.options(Knobs.of(context.settings).kstreams_heap, context.work),
                *jvm.only_warnings(),
                "-cp",
                f"{part / 'classes'}:{jvm.class_path(part / 'lib')}",
                MAIN,
            ],
            env={
                **told(context.settings),
                "KAFKA_BOOTSTRAP": net.kafka(context.settings),
                "SCHEMA_REGISTRY_URL": registry.url(context.settings),
                "KSTREAMS_STATE_FOLDER": str(context.work / "state"),
                "KSTREAMS_READY_FILE": str(context.work / READY_FILE),
            },
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """The first row of its summary is written."""
        if not (context.work / READY_FILE).exists():
            raise NotReady("it has written no row yet")

    def versions(self, context: Context) -> Mapping[str, str]:
        jars = " ".join(path.name for path in (context.parts["kstreams"] / "lib").glob("*.jar"))
        found = re.search(r"\bkafka-streams-(\S+)\.jar", jars)
        return {"kafka-streams": found[1]} if found else {}


def told(settings: Settings) -> dict[str, str]:
    """What the program is told in every runtime."""
    knobs = Knobs.of(settings)
    return {
        "WORKLOAD": settings.workload,
        "KSTREAMS_THREADS": str(knobs.kstreams_threads),
        "KSTREAMS_COMMIT_MS": str(knobs.kstreams_commit_ms),
        "KSTREAMS_GUARANTEE": knobs.kstreams_guarantee,
        "KSTREAMS_CACHE_MB": str(knobs.kstreams_cache_mb),
        "KSTREAMS_LINGER_MS": str(knobs.kstreams_linger_ms),
        "KSTREAMS_STORE": knobs.kstreams_store,
        "KSTREAMS_CHANGELOG": knobs.kstreams_changelog,
        "KSTREAMS_AFTER_A_KILL": knobs.kstreams_after_a_kill,
    }


SERVICE = KStreams()
