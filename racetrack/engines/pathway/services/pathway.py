"""Service of Pathway: the program `racetrack/engines/pathway/program`, which maintains the
views."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from racetrack.config import Settings, properties_in
from racetrack.engines.pathway.settings import NAMES, PathwaySettings
from racetrack.engines.shared.python_program import PythonProgram
from racetrack.stack.service import Context, Launch
from racetrack.stack.services import registry
from racetrack.workloads.contract import find_workload


@dataclass(frozen=True)
class PathwayProgram(PythonProgram):
    """See `racetrack.stack.service.NativeService`. The program runs in Pathway's environment."""

    def launch(self, context: Context) -> Launch:
        launch = super().launch(context)
        python = context.parts[self.name] / "bin" / "python"
        return replace(launch, argv=[str(python), *launch.argv[1:]])

    def versions(self, context: Context) -> Mapping[str, str]:
        packages = context.parts[self.name].glob("lib/python3*/site-packages/*.dist-info")
        known = dict(path.name.removesuffix(".dist-info").split("-", 1) for path in packages)
        return {name: known[name.replace("-", "_")] for name in self.libraries}


def _environment(settings: Settings) -> Mapping[str, str]:
    values = {name.upper(): str(value) for name, value in settings.model_dump().items()}
    return {
        **properties_in(PathwaySettings.of(settings).pathway_properties),
        **{name: values[name] for name in (*NAMES, "WORKLOAD")},
        "SCHEMA_REGISTRY_URL": registry.url(settings),
        "SELECTED": ",".join(find_workload(settings.workload).selected(settings)),
    }


SERVICE = PathwayProgram(
    "pathway",
    "racetrack.engines.pathway.program",
    after=("loadgen", "debezium"),  # they create the topics that it reads
    environment=_environment,
    not_ready="it has written nothing yet",
    libraries=("pathway", "confluent-kafka", "fastavro"),
    parts=("pathway",),
    ready_within_s=120.0,
)
