"""Watches the schemas of the changes of MySQL's tables, for engines that read them by the first."""

import json
from collections.abc import Mapping
from typing import Any

from racetrack.engines.contract import Engine
from racetrack.errors import EngineFailed, RacetrackError
from racetrack.probes.refused_input import KafkaInput
from racetrack.probes.thread import Probe
from racetrack.stack import net
from racetrack.stack.avro import id_of
from racetrack.stack.contract import Stack
from racetrack.stack.service import NotReady
from racetrack.workloads.contract import find_workload

ASK_EVERY_S = 5.0
Types = Mapping[str, str]


class SchemasProbe(Probe):
    """Fails once a column has another type than when the demo was loaded, such as a decimal with
    another scale: an engine that goes on with the first one would read wrong numbers."""

    failure_kind = EngineFailed

    def __init__(self, engine: Engine, stack: Stack, ask_every_s: float = ASK_EVERY_S) -> None:
        super().__init__()
        self._ask_every_s = ask_every_s
        self.name = f"What {engine.title} reads of MySQL's tables"
        workload = find_workload(stack.settings.workload)
        self._topics = [workload.cdc_topic(table) for table in workload.tables]
        self._kafka, self._registry = stack.endpoints.kafka, stack.endpoints.registry

    def run(self) -> None:
        """Compare each topic's newest schema with its first."""
        first: dict[str, Types] = {}
        while not self.stopping.wait(self._ask_every_s):
            for topic in self._topics:
                try:
                    newest = self._types(f"subjects/{topic}-value/versions/latest")
                    if changed := changed_field(first.setdefault(topic, newest), newest):
                        self._fail(topic, first[topic], changed)
                except NotReady:
                    continue  # it may be away on purpose, and is asked again

    def _fail(self, topic: str, first: Types, field: str) -> None:
        """Raise with the first message of another type, if it has been published yet."""
        types: dict[int, Types] = {}
        for message in KafkaInput(self._kafka).since(topic, {}):
            if (number := id_of(message.value)) not in types:
                types[number] = self._types(f"schemas/ids/{number}")
            if types[number].get(field, first[field]) != first[field]:
                # As `refused_input` reads it.
                raise RacetrackError(
                    f"RACETRACK refused topic={topic}, partition={message.partition},"
                    f" offset={message.offset}, field={field},"
                    f" reason=its type is now {types[number][field]}, and was {first[field]}"
                )

    def _types(self, path: str) -> Types:
        found: Any = net.get_json(f"{self._registry}/{path}")
        return column_types(found["schema"])


def column_types(envelope: str) -> Types:
    """The type of each column by the schema of Debezium's changes, NULL or not."""
    fields = {each["name"]: each["type"] for each in json.loads(envelope)["fields"]}
    row = next(each for each in fields["before"] if isinstance(each, dict))
    return {column["name"]: _shown(column["type"]) for column in row["fields"]}


def changed_field(first: Types, newest: Types) -> str:
    """The first column whose type is not what it was; empty if there is none."""
    return next((name for name in first if newest.get(name, first[name]) != first[name]), "")


def _shown(avro: Any) -> str:
    if isinstance(avro, list):
        return _shown(next(each for each in avro if each != "null"))
    if not isinstance(avro, dict):
        return str(avro)
    if avro.get("logicalType") == "decimal":
        return f"DECIMAL({avro['precision']}, {avro.get('scale', 0)})"
    return str(avro["type"])
