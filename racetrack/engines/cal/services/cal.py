"""Service of the calibration engine: its consumer."""

from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.engines.cal import paths
from racetrack.engines.cal.settings import NAMES, CalibrationSettings
from racetrack.engines.shared.python_program import PythonProgram
from racetrack.workloads.contract import find_workload


def _environment(settings: Settings) -> Mapping[str, str]:
    values = {name.upper(): str(value) for name, value in settings.model_dump().items()}
    topic = find_workload(settings.workload).topic
    return {
        **{name: values[name] for name in (*NAMES, "ENGINE_REPLICAS")},
        **paths.environment(settings, CalibrationSettings.of(settings).cal_path),
        "CAL_TOPIC": topic.name,
        "CAL_DUE": topic.due_field,
    }


SERVICE = PythonProgram(
    "cal",
    "racetrack.engines.cal.consumer",
    after=("loadgen", "postgres", "redis"),  # the generator creates the topic
    environment=_environment,
    not_ready="it has not been assigned the partitions of the topic yet",
    libraries=("confluent-kafka", "psycopg"),
)
