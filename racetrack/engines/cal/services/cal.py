"""Service of the calibration engine: its consumer, which runs in the harness's Python."""

import sys
from collections.abc import Mapping
from importlib.metadata import version

from racetrack.config import REPO, Settings
from racetrack.engines.cal.settings import DEFECTS
from racetrack.stack import net
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.workloads.contract import find_workload

READY_FILE = "ready"


class Cal:
    """See `racetrack.stack.service.NativeService`."""

    name = "cal"
    parts = ()
    after = ("loadgen",)  # the generator creates the topic
    ready_within_s = 30.0

    def ports(self, _settings: Settings) -> Mapping[str, int]:
        return {}

    def launch(self, context: Context) -> Launch:
        settings = context.settings
        (context.work / READY_FILE).unlink(missing_ok=True)  # a killed consumer leaves it behind
        defects = {k.upper(): v for k, v in settings.model_dump().items() if k.upper() in DEFECTS}
        topic = find_workload(settings.workload).topic
        return Launch(
            argv=[sys.executable, "-m", "racetrack.engines.cal.consumer"],
            env={
                **{name: str(value) for name, value in defects.items()},
                "TRACER_EVENTS_PER_SECOND": str(settings.tracer_events_per_second),
                "KAFKA_BOOTSTRAP": net.kafka(settings),
                "CAL_TOPIC": topic.name,
                "CAL_DUE": topic.due_field,
                "CAL_READY_FILE": str(context.work / READY_FILE),
                "PYTHONPATH": str(REPO),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            cwd=context.work,
        )

    def check(self, context: Context) -> None:
        """Raise NotReady until all partitions of the topic are assigned."""
        if not (context.work / READY_FILE).exists():
            raise NotReady("it has not been assigned the partitions of the topic yet")

    def versions(self, _context: Context) -> Mapping[str, str]:
        return {"confluent-kafka": version("confluent-kafka")}


SERVICE = Cal()
