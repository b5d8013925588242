"""Process of Pathway: builds the dataflow of the workload, and runs it until it is ended.

python -m racetrack.engines.pathway.program

The environment contains the variables of `KafkaEndpoint`, SCHEMA_REGISTRY_URL, WORKLOAD, READY_FILE
(a file that is created once the first counts are written), and the settings in the `.env` of this
engine's folder. Pathway itself reads PATHWAY_THREADS. Without a licence key, it sends no telemetry.
"""

import importlib
import logging
import os

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import Dataflow
from racetrack.workloads.contract import find_workload

READERS, REFUSED = "pathway_engine.connectors", "Parse error: "


class EndOnRefusal(logging.Handler):
    """Ends the process if a message can't be read. Pathway would log that, and go on without the
    message: a measurement must not hide errors."""

    def __init__(self, topic: str) -> None:
        """Report refused messages as messages of `topic`: Pathway does not name theirs."""
        super().__init__()
        self._topic = topic

    def emit(self, record: logging.LogRecord) -> None:
        """End the process if the record reports a refused message."""
        message = record.getMessage()
        if message.startswith(REFUSED):
            reason = message.removeprefix(REFUSED)
            # racetrack/probes/refused_input.py parses this line.
            print(f"RACETRACK refused topic={self._topic}, reason={reason}", flush=True)
            os._exit(1)


def main() -> None:
    """Run the dataflow that the environment describes."""
    flow, name = Dataflow.from_environment(os.environ), os.environ["WORKLOAD"]
    logging.getLogger(READERS).addHandler(EndOnRefusal(find_workload(name).topic.name))
    importlib.import_module(f"racetrack.engines.pathway.program.{name}").build(flow)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main()
