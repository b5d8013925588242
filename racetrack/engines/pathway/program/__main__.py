"""Process of Pathway: builds the dataflow of the workload, and runs it until it is ended.

python -m racetrack.engines.pathway.program

The environment contains the variables of `KafkaEndpoint`, SCHEMA_REGISTRY_URL, WORKLOAD, SELECTED
(the names of the workload's selected views, if it has a selection), READY_FILE (a file that is
created once the first rows are written), and the settings in the `.env` of this
engine's folder. Pathway itself reads PATHWAY_THREADS. Without a licence key, it sends no telemetry.
"""

import importlib
import os

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import Dataflow


def main() -> None:
    """Run the dataflow that the environment describes."""
    flow, name = Dataflow.from_environment(os.environ), os.environ["WORKLOAD"]
    importlib.import_module(f"racetrack.engines.pathway.program.{name}").build(flow)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main()
