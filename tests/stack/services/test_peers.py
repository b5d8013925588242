"""Test of Debezium with a Kafka that the user provides."""

from racetrack.stack.service import Context
from racetrack.stack.services import debezium
from tests.secured_kafka import client_properties
from tests.stack.services.test_services import with_settings


def test_debezium_gets_the_properties_of_a_kafka_elsewhere_without_secrets_in_files(
    context: Context,
) -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "the secret",
    }
    outside = with_settings(
        context,
        kafka_bootstrap_servers="a.example:9092",
        kafka_topic_prefix="race-1.",
        kafka_client_properties=client_properties(context.work / "c.properties", properties),
        kafka_replication_factor=3,
    )
    worker = debezium.worker_properties(outside)
    assert worker["bootstrap.servers"] == "a.example:9092"
    for client in ("", "producer.", "admin."):
        name = f"{client}sasl.jaas.config"
        assert worker[name] == "${env:KAFKA_PROPERTY_SASL_JAAS_CONFIG}"
    connector = debezium.connector_config(outside)
    assert connector["topic.prefix"] == "race-1.mysql"
    assert connector["topic.creation.default.replication.factor"] == "3"
    assert "the secret" not in str({**worker, **connector})
