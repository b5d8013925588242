"""Service of the calibration engine: its consumer."""

from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.engines.cal.settings import DEFECTS
from racetrack.engines.shared.python_program import PythonProgram
from racetrack.workloads.contract import find_workload


def _environment(settings: Settings) -> Mapping[str, str]:
    values = {name.upper(): str(value) for name, value in settings.model_dump().items()}
    topic = find_workload(settings.workload).topic
    return {
        **{
            name: values[name] for name in (*DEFECTS, "ENGINE_REPLICAS", "TRACER_EVENTS_PER_SECOND")
        },
        "CAL_TOPIC": topic.name,
        "CAL_DUE": topic.due_field,
    }


SERVICE = PythonProgram(
    "cal",
    "racetrack.engines.cal.consumer",
    after=("loadgen",),  # the generator creates the topic
    environment=_environment,
    not_ready="it has not been assigned the partitions of the topic yet",
    libraries=("confluent-kafka",),
)
