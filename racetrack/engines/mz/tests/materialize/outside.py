"""The broker and the schema registry that Materialize asks: made up, or those of a real stack."""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka.admin import AdminClient

ANSWER_WITHIN_S = 10.0

# The shop's tables, as far as the demo reads them: column → its type in Avro.
SHOP: dict[str, dict[str, Any]] = {
    "users": {"id": "long", "email": ["null", "string"]},
    "items": {"id": "long", "name": ["null", "string"], "category": ["null", "string"]},
    "purchases": {
        "id": "long",
        "user_id": ["null", "long"],
        "item_id": ["null", "long"],
        "quantity": "long",
        "purchase_price": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    },
}


class Outside(Protocol):
    """What Materialize finds out when it makes a source."""

    def has_topic(self, topic: str) -> bool:
        """Whether the broker has it."""

    def schema(self, subject: str) -> Any:
        """The newest schema of a subject, None if the registry has none."""


@dataclass
class FakeOutside:
    """A broker and a registry that hold what a test puts there: at first what the load generator
    and Debezium make, but not where the sink writes to."""

    topics: set[str] = field(
        default_factory=lambda: {"pageviews", "dd_flagged_profiles", *map(_topic, SHOP)}
    )
    schemas: dict[str, Any] = field(
        default_factory=lambda: {
            f"{_topic(table)}-{part}": schema
            for table, columns in SHOP.items()
            for part, schema in _debezium(columns).items()
        }
    )

    def has_topic(self, topic: str) -> bool:
        """See `Outside`."""
        return topic in self.topics

    def schema(self, subject: str) -> Any:
        """See `Outside`."""
        return self.schemas.get(subject)


@dataclass(frozen=True)
class Running:
    """Those of a stack that runs."""

    kafka: str
    registry: str

    def has_topic(self, topic: str) -> bool:
        """See `Outside`."""
        admin = AdminClient({"bootstrap.servers": self.kafka})
        return topic in admin.list_topics(timeout=ANSWER_WITHIN_S).topics

    def schema(self, subject: str) -> Any:
        """See `Outside`."""
        url = f"{self.registry}/subjects/{subject}/versions/latest"
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_WITHIN_S) as answer:  # noqa: S310
                return json.loads(json.load(answer)["schema"])
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None


def _topic(table: str) -> str:
    return f"mysql.shop.{table}"


def _debezium(columns: dict[str, Any]) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    row = {"type": "record", "name": "Value", "fields": fields}
    envelope = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": "Value"}]
    return {
        "key": {"type": "record", "name": "Key", "fields": fields[:1]},
        "value": {"type": "record", "name": "Envelope", "fields": envelope},
    }
